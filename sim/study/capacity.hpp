/// The highest step of a rate grid at which a target is met.
#pragma once

#include <functional>

namespace servesim {

enum class CapacityStatus {
  kFound,      ///< `step` meets the target; `step` + 1 and those that `looks` asks about do not
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
  int start;            ///< where to look first; any value gives the same answer, a near one sooner
  int first_step;       ///< how far to look next; doubled each time
  int looks = 1;        ///< how many steps above the answer must not meet the target
  int look_stride = 1;  ///< how far they are apart
};

/// Brackets the capacity by strides that double from `start`, then halves the bracket. `meets` says
/// whether a step meets the target; each step is asked about at most once. Where `meets` is not
/// monotone there are several crossings; looks above one find a higher one nearby, from which the
/// search goes on, and the answer still depends on `start`.
/// REQUIRES: lowest < highest, first_step > 0, look_stride > 0.
Capacity find_capacity(const CapacityRange& range, const std::function<bool(int)>& meets);

}  // namespace servesim
