#include "study/capacity.hpp"

#include <algorithm>
#include <map>

namespace servesim {
namespace {

class Memory {
 public:
  explicit Memory(const std::function<bool(int)>& meets) : meets_(meets) {}
  bool operator()(int step) {
    const auto found = known_.find(step);
    if (found != known_.end()) return found->second;
    return known_[step] = meets_(step);
  }
  int size() const { return static_cast<int>(known_.size()); }

 private:
  const std::function<bool(int)>& meets_;
  std::map<int, bool> known_;
};

}  // namespace

Capacity find_capacity(const CapacityRange& range, const std::function<bool(int)>& meets) {
  Memory met(meets);
  int low = std::clamp(range.start, range.lowest, range.highest);
  int high = low;
  int stride = range.first_step;
  if (met(low)) {
    while (true) {
      if (low == range.highest) return {CapacityStatus::kUnbounded, low, met.size()};
      high = std::min(range.highest, low + stride);
      if (!met(high)) break;
      low = high;
      stride = std::min(2 * stride, range.highest - range.lowest);
    }
  } else {
    while (true) {
      if (high == range.lowest) return {CapacityStatus::kUnmet, high, met.size()};
      low = std::max(range.lowest, high - stride);
      if (met(low)) break;
      high = low;
      stride = std::min(2 * stride, range.highest - range.lowest);
    }
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (met(middle) ? low : high) = middle;
  }
  return {CapacityStatus::kFound, low, met.size()};
}

}  // namespace servesim
