/// A small deterministic minimiser.
#pragma once

#include <functional>
#include <vector>

namespace servesim::calibrate {

/// Minimises `loss` by Nelder and Mead's simplex method (Computer Journal 7, 1965), restarted
/// `restarts` times around the best point so far with alternating steps; `steps` simplex moves
/// each. Returns the best point. Deterministic.
std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& loss,
                             std::vector<double> start, int restarts, int steps);

}  // namespace servesim::calibrate
