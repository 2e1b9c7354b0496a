#include "study/rate_grid.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace servesim {

RateGrid::RateGrid(double tolerance)
    : steps_per_decade_(static_cast<int>(std::ceil(1 / std::log10(1 + tolerance)))) {}

std::string RateGrid::text(int k) const {
  const double exact = std::pow(10.0, static_cast<double>(k) / steps_per_decade_);
  if (exact >= 99999.5) return fmt::format("{:.0f}", exact);
  std::string digits = fmt::format("{:#.5g}", exact);
  while (digits.find('.') != std::string::npos && (digits.back() == '0' || digits.back() == '.')) {
    const bool point = digits.back() == '.';
    digits.pop_back();
    if (point) break;
  }
  return digits;
}

double RateGrid::rate(int k) const {
  return std::strtod(text(k).c_str(), nullptr);
}

int RateGrid::floor(double wanted) const {
  int k = static_cast<int>(std::floor(std::log10(wanted) * steps_per_decade_));
  while (rate(k + 1) <= wanted) ++k;
  while (rate(k) > wanted) --k;
  return k;
}

}  // namespace servesim
