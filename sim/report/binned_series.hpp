/// Quantities over time, in a bounded number of bins however long the run is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.hpp"

namespace servesim {

/// Channels that share at most `bins` bins of equal width. The width doubles, and neighbours are
/// merged, when time outgrows them, so that what is left out is resolution and never an event.
/// Integrals are exact up to the rounding of doubles.
class BinnedSeries {
 public:
  /// REQUIRES: bins >= 2, width > 0.
  BinnedSeries(std::size_t channels, std::size_t bins, SimTime width = SimTime::from_ms(1));

  std::size_t add_channel();
  std::size_t channels() const { return values_.size(); }

  /// Adds height * time, in constant time.
  void add(std::size_t channel, SimTime from, SimTime to, double height);
  /// Adds the integral of a line from `first` to `last`, in time proportional to the bins it meets.
  void add_ramp(std::size_t channel, SimTime from, SimTime to, double first, double last);
  /// Spreads `amount` evenly; all of it into one bin when from == to.
  void add_amount(std::size_t channel, SimTime from, SimTime to, double amount);
  /// Raises the bins met to at least `value`, in time proportional to their number. A channel has
  /// either maxima or integrals.
  void raise(std::size_t channel, SimTime from, SimTime to, double value);

  /// Bins up to the last one that was met.
  std::size_t used() const { return used_; }
  SimTime start() const { return start_; }
  SimTime width() const { return SimTime(width_); }
  /// Per bin: the integral over nanoseconds, or the amount.
  std::vector<double> integral(std::size_t channel);
  /// Per bin: integral / width.
  std::vector<double> mean(std::size_t channel);
  const std::vector<double>& maximum(std::size_t channel) const { return values_[channel]; }

 private:
  void fit(SimTime from, SimTime to);
  void double_width();
  void shift_right(std::size_t bins);
  void settle(std::size_t channel);
  std::size_t bin_of(SimTime time) const;
  std::int64_t bin_start(std::size_t bin) const {
    return start_.ns() + static_cast<std::int64_t>(bin) * width_;
  }

  std::size_t bins_;
  std::int64_t width_;
  SimTime start_;
  bool started_ = false;
  std::size_t used_ = 0;
  std::vector<std::vector<double>> values_;
  std::vector<std::vector<double>> changes_;  ///< of the height of wholly covered bins, at a bin
  std::vector<bool> is_maximum_;
};

}  // namespace servesim
