/// The highest step of a rate grid at which a target is met.
#pragma once

#include <functional>

namespace servesim {

enum class CapacityStatus {
  kFound,      ///< `step` meets the target; `step` + 1 and those looked ahead to do not
  kUnmet,      ///< not even the lowest step meets it
  kUnbounded,  ///< the highest step meets it
};

struct Capacity {
  CapacityStatus status;
  int step;    ///< kUnmet: the lowest one; kUnbounded: the highest
  int probes;  ///< distinct steps that were asked about
};

struct CapacityRange {
  int lowest, highest;
  int start;       ///< where to look first; any value gives the same answer, a near one sooner
  int first_step;  ///< how far to look next; doubled each time
  int lookahead =
      0;  ///< so many more looks above the bracket, 2, 4, 8, ... steps above its lower end
};

/// Brackets the capacity by strides that double from `start`, then halves the bracket. `meets` says
/// whether a step meets the target; each step is asked about at most once. Where `meets` is not
/// monotone there are several crossings; looking ahead finds a higher one nearby, and the answer
/// still depends on `start`.
/// REQUIRES: lowest < highest, first_step > 0.
Capacity find_capacity(const CapacityRange& range, const std::function<bool(int)>& meets);

}  // namespace servesim
