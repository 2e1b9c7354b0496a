#include "kv/region_space.hpp"

#include <algorithm>
#include <stdexcept>

namespace servesim {

std::optional<Region> RegionSpace::place(std::int64_t size) {
  const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                 [size](const auto& entry) { return entry.second >= size; });
  if (hole == holes_.end()) return std::nullopt;
  const Region region{hole->first, size};
  const std::int64_t rest = hole->second - size;
  const auto next = holes_.erase(hole);
  if (rest > 0) holes_.emplace_hint(next, region.end(), rest);
  free_ -= size;
  ++version_;
  return region;
}

void RegionSpace::release(const Region& region) {
  Region hole = region;
  auto next = holes_.lower_bound(region.begin);
  if (next != holes_.end() && next->first == hole.end()) {
    hole.size += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == hole.begin) {
      before->second += hole.size;
      hole.size = 0;
    }
  }
  if (hole.size > 0) holes_.emplace_hint(next, hole.begin, hole.size);
  free_ += region.size;
  ++version_;
}

std::int64_t RegionSpace::largest_hole() const {
  std::int64_t largest = 0;
  for (const auto& [begin, size] : holes_) largest = std::max(largest, size);
  return largest;
}

std::int64_t RegionSpace::unusable_for(std::int64_t size) const {
  std::int64_t unusable = 0;
  for (const auto& [begin, hole] : holes_) unusable += hole < size ? hole : 0;
  return unusable;
}

void RegionSpace::check_integrity() const {
  std::int64_t free = 0;
  std::int64_t last_end = -1;
  for (const auto& [begin, size] : holes_) {
    if (size <= 0) throw std::logic_error("RegionSpace: an empty hole");
    if (begin <= last_end) throw std::logic_error("RegionSpace: holes touch or overlap");
    last_end = begin + size;
    free += size;
  }
  if (free != free_ || last_end > slots_) {
    throw std::logic_error("RegionSpace: the holes do not add up to what is free");
  }
}

}  // namespace servesim
