/// A log-log scatter plot of predicted against measured values, as SVG.
#pragma once

#include <string>
#include <vector>

#include "validation/validation_report.hpp"

namespace servesim {

/// Points of `section`, coloured by series, with the diagonal and lines 10 % either side of it.
/// Values that are not above 0 are left out. Empty text when no point is left.
std::string scatter_svg(const std::vector<ValidationPoint>& points, const std::string& section);

}  // namespace servesim
