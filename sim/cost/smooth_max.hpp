/// The smooth maximum that joins the limits of a roofline, tabulated so that pricing needs no
/// pow().
#pragma once

#include <algorithm>
#include <vector>

namespace servesim {

/// (a^q + b^q)^(1/q) = high * (1 + u^q)^(1/q) with u = low/high in [0, 1], which one table of u
/// serves for all a and b. Linear interpolation over 4096 intervals: relative error below 1e-7 for
/// q >= 1.5, and rising in both arguments like the function itself.
class SmoothMax {
 public:
  /// REQUIRES: q >= 1.
  explicit SmoothMax(double q);

  /// REQUIRES: a >= 0, b >= 0.
  double operator()(double a, double b) const {
    const double high = std::max(a, b);
    const double low = std::min(a, b);
    return high > 0 ? high * at(value_, low / high) : 0.0;
  }

  /// a^q / (a^q + b^q): how far a is the limiting one. 0 when both are 0.
  double share(double a, double b) const {
    const double high = std::max(a, b);
    if (!(high > 0)) return 0;
    const double low_share = at(share_, std::min(a, b) / high);
    return a <= b ? low_share : 1 - low_share;
  }

 private:
  static constexpr int kIntervals = 4096;

  static double at(const std::vector<double>& table, double u) {
    const double scaled = u * kIntervals;
    const auto i = static_cast<std::size_t>(scaled);
    const double left = table[i];
    return left + (scaled - static_cast<double>(i)) * (table[i + 1] - left);
  }

  std::vector<double> value_;  ///< (1 + u^q)^(1/q); one entry beyond u = 1
  std::vector<double> share_;  ///< u^q / (1 + u^q)
};

}  // namespace servesim
