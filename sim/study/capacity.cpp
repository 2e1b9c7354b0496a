#include "study/capacity.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace servesim {
namespace {

constexpr int kLongestStride = 1 << 20;

/// Asks about each step once.
class Memory {
 public:
  explicit Memory(const std::function<bool(int)>& meets) : meets_(meets) {}
  bool operator()(int step) {
    const auto found = known_.find(step);
    if (found != known_.end()) return found->second;
    return known_[step] = meets_(step);
  }
  /// The nearest step above `step` that is known not to meet the target.
  std::optional<int> lowest_unmet_above(int step) const {
    for (auto at = known_.upper_bound(step); at != known_.end(); ++at) {
      if (!at->second) return at->first;
    }
    return std::nullopt;
  }
  int size() const { return static_cast<int>(known_.size()); }

 private:
  const std::function<bool(int)>& meets_;
  std::map<int, bool> known_;
};

/// A step that meets the target, from the start downwards; none: not even the lowest does.
std::optional<int> bracket(const CapacityRange& range, Memory& met) {
  int at = std::clamp(range.start, range.lowest, range.highest);
  for (int stride = range.first_step; !met(at); stride = std::min(2 * stride, kLongestStride)) {
    if (at == range.lowest) return std::nullopt;
    at = std::max(range.lowest, at - stride);
  }
  return at;
}

/// A step above `low` that does not meet the target, by growing strides; above the highest: none.
int first_unmet(int low, const CapacityRange& range, Memory& met) {
  if (const std::optional<int> known = met.lowest_unmet_above(low)) return *known;
  for (int stride = range.first_step;; stride = std::min(2 * stride, kLongestStride)) {
    if (low == range.highest) return range.highest + 1;
    const int high = std::min(range.highest, low + stride);
    if (!met(high)) return high;
    low = high;
  }
}

int bisect(int low, int high, Memory& met) {
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (met(middle) ? low : high) = middle;
  }
  return low;
}

/// The nearest of the steps to look at above `low` that meets the target.
std::optional<int> look_ahead(int low, const CapacityRange& range, Memory& met) {
  for (int look = 1; look <= range.looks; ++look) {
    const int at = low + look * range.look_stride;
    if (at <= range.highest && met(at)) return at;
  }
  return std::nullopt;
}

}  // namespace

Capacity find_capacity(const CapacityRange& range, const std::function<bool(int)>& meets) {
  Memory met(meets);
  const std::optional<int> first = bracket(range, met);
  if (!first) return {CapacityStatus::kUnmet, range.lowest, met.size()};
  int low = *first;
  while (low < range.highest) {
    const int high = first_unmet(low, range, met);
    if (high > range.highest) return {CapacityStatus::kUnbounded, range.highest, met.size()};
    low = bisect(low, high, met);
    const std::optional<int> higher = look_ahead(low, range, met);
    if (!higher) return {CapacityStatus::kFound, low, met.size()};
    low = *higher;
  }
  return {CapacityStatus::kUnbounded, low, met.size()};
}

}  // namespace servesim
