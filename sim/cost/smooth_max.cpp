#include "cost/smooth_max.hpp"

#include <cmath>

namespace servesim {

SmoothMax::SmoothMax(double q) {
  value_.reserve(kIntervals + 2);
  share_.reserve(kIntervals + 2);
  for (int i = 0; i <= kIntervals + 1; ++i) {
    const double power = std::pow(static_cast<double>(i) / kIntervals, q);
    value_.push_back(std::pow(1 + power, 1 / q));
    share_.push_back(power / (1 + power));
  }
}

}  // namespace servesim
