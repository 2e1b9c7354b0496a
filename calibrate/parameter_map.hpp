/// Parameters within their bounds from unbounded variables.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace servesim::calibrate {

/// Reads the variables of a point one by one, each as the kind of number it stands for.
class Variables {
 public:
  explicit Variables(const std::vector<double>& point) : point_(point) {}

  /// exp(v): above 0.
  double positive() { return std::exp(next()); }
  /// low + (high - low) * logistic(v).
  double between(double low, double high) { return low + (high - low) / (1 + std::exp(-next())); }

 private:
  double next() { return point_[at_++]; }
  const std::vector<double>& point_;
  std::size_t at_ = 0;
};

/// The variable that Variables::between(low, high) turns into `value`.
inline double between_variable(double value, double low, double high) {
  const double share = (value - low) / (high - low);
  return std::log(share / (1 - share));
}

}  // namespace servesim::calibrate
