/// The request rates a capacity search may name: a geometric series, so that searches that start
/// elsewhere meet the same runs, and every rate is a short decimal that a person can type.
#pragma once

#include <string>

namespace servesim {

/// Rates 10^(k/n) requests/s, rounded to five significant digits; neighbours differ by at most the
/// tolerance (and that rounding, 0.005 %).
class RateGrid {
 public:
  /// REQUIRES: 0.0005 <= tolerance <= 1.
  explicit RateGrid(double tolerance);

  /// Step `k` as --request-rate takes it.
  std::string text(int k) const;
  /// The value of text(k), to the last bit.
  double rate(int k) const;
  /// The last step whose rate is no higher than `rate`. REQUIRES: rate > 0.
  int floor(double rate) const;
  int steps_per_decade() const { return steps_per_decade_; }

 private:
  int steps_per_decade_;
};

}  // namespace servesim
