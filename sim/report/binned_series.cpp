#include "report/binned_series.hpp"

#include <algorithm>
#include <cmath>

namespace servesim {

BinnedSeries::BinnedSeries(std::size_t channels, std::size_t bins, SimTime width)
    : bins_(bins), width_(width.ns()) {
  for (std::size_t i = 0; i < channels; ++i) add_channel();
}

std::size_t BinnedSeries::add_channel() {
  values_.emplace_back(bins_, 0.0);
  changes_.emplace_back(bins_ + 1, 0.0);
  is_maximum_.push_back(false);
  return values_.size() - 1;
}

void BinnedSeries::add(std::size_t channel, SimTime from, SimTime to, double height) {
  if (to <= from || height == 0) return;
  fit(from, to);
  std::vector<double>& values = values_[channel];
  const std::size_t first = bin_of(from);
  const std::size_t last = bin_of(to - SimTime(1));
  if (first == last) {
    values[first] += height * static_cast<double>((to - from).ns());
    return;
  }
  values[first] += height * static_cast<double>(bin_start(first + 1) - from.ns());
  values[last] += height * static_cast<double>(to.ns() - bin_start(last));
  changes_[channel][first + 1] += height;
  changes_[channel][last] -= height;
}

void BinnedSeries::add_ramp(std::size_t channel, SimTime from, SimTime to, double first,
                            double last) {
  if (to <= from) return;
  if (first == last) return add(channel, from, to, first);
  fit(from, to);
  const double slope = (last - first) / static_cast<double>((to - from).ns());
  const std::size_t end = bin_of(to - SimTime(1));
  for (std::size_t bin = bin_of(from); bin <= end; ++bin) {
    const std::int64_t a = std::max(from.ns(), bin_start(bin));
    const std::int64_t b = std::min(to.ns(), bin_start(bin + 1));
    const double middle = 0.5 * static_cast<double>((a - from.ns()) + (b - from.ns()));
    values_[channel][bin] += (first + slope * middle) * static_cast<double>(b - a);
  }
}

void BinnedSeries::add_amount(std::size_t channel, SimTime from, SimTime to, double amount) {
  if (to > from) return add(channel, from, to, amount / static_cast<double>((to - from).ns()));
  fit(from, from + SimTime(1));
  values_[channel][bin_of(from)] += amount;
}

void BinnedSeries::raise(std::size_t channel, SimTime from, SimTime to, double value) {
  to = std::max(to, from + SimTime(1));
  fit(from, to);
  is_maximum_[channel] = true;
  const std::size_t end = bin_of(to - SimTime(1));
  for (std::size_t bin = bin_of(from); bin <= end; ++bin) {
    values_[channel][bin] = std::max(values_[channel][bin], value);
  }
}

std::vector<double> BinnedSeries::integral(std::size_t channel) {
  settle(channel);
  std::vector<double> result(values_[channel].begin(),
                             values_[channel].begin() + static_cast<std::ptrdiff_t>(used_));
  // Heights that come and go leave a little more or less than nothing.
  constexpr double kRounding = 1e-12;
  double most = 0;
  for (const double value : result) most = std::max(most, std::abs(value));
  for (double& value : result) {
    if (std::abs(value) < kRounding * most) value = 0;
  }
  return result;
}

std::vector<double> BinnedSeries::mean(std::size_t channel) {
  std::vector<double> result = integral(channel);
  for (double& value : result) value /= static_cast<double>(width_);
  return result;
}

std::size_t BinnedSeries::bin_of(SimTime time) const {
  return static_cast<std::size_t>((time - start_).ns() / width_);
}

/// Makes room for [from, to).
void BinnedSeries::fit(SimTime from, SimTime to) {
  if (!started_) {
    started_ = true;
    start_ = from;
  }
  while (from < start_) {
    const std::int64_t missing = ((start_ - from).ns() + width_ - 1) / width_;
    if (static_cast<std::int64_t>(used_) + missing <= static_cast<std::int64_t>(bins_)) {
      shift_right(static_cast<std::size_t>(missing));
    } else {
      double_width();
    }
  }
  while ((to - start_).ns() > static_cast<std::int64_t>(bins_) * width_) double_width();
  used_ = std::max(used_, bin_of(to - SimTime(1)) + 1);
}

void BinnedSeries::double_width() {
  for (std::size_t channel = 0; channel < values_.size(); ++channel) {
    settle(channel);
    std::vector<double>& values = values_[channel];
    for (std::size_t i = 0; i < bins_; ++i) {
      const double left = 2 * i < bins_ ? values[2 * i] : 0;
      const double right = 2 * i + 1 < bins_ ? values[2 * i + 1] : 0;
      values[i] = is_maximum_[channel] ? std::max(left, right) : left + right;
    }
  }
  width_ *= 2;
  used_ = (used_ + 1) / 2;
}

void BinnedSeries::shift_right(std::size_t bins) {
  for (std::size_t channel = 0; channel < values_.size(); ++channel) {
    settle(channel);
    std::vector<double>& values = values_[channel];
    std::rotate(values.begin(), values.end() - static_cast<std::ptrdiff_t>(bins), values.end());
  }
  start_ -= SimTime(width_) * static_cast<std::int64_t>(bins);
  used_ += bins;
}

/// Turns the changes of height into values.
void BinnedSeries::settle(std::size_t channel) {
  std::vector<double>& changes = changes_[channel];
  double height = 0;
  for (std::size_t i = 0; i < bins_; ++i) {
    height += changes[i];
    values_[channel][i] += height * static_cast<double>(width_);
    changes[i] = 0;
  }
  changes[bins_] = 0;
}

}  // namespace servesim
