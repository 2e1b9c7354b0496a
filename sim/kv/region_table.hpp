/// Who holds which region of a contiguous KV space.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/region_rules.hpp"
#include "kv/region_space.hpp"

namespace servesim {

/// One region per owner, sized by a rule and never larger than the space.
class RegionTable {
 public:
  using Owner = std::uint32_t;

  /// REQUIRES: slots >= 1, longest >= 1.
  RegionTable(RegionRule rule, std::int64_t slots, std::int64_t longest)
      : rule_(rule), longest_(std::min(longest, slots)), space_(slots), last_size_(longest_) {}

  /// Slots that the rule reserves for a sequence that needs `needed` now and `last` at its end.
  std::int64_t size_for(std::int64_t needed, std::int64_t last) const {
    return rule_(needed, std::max(needed, last), longest_);
  }

  /// Gives `owner`, who holds nothing, a region. False, with nothing changed, when none is free.
  bool place(Owner owner, std::int64_t needed, std::int64_t last);

  /// Moves `owner`'s region to a larger one; both exist until the copy is done. False, with nothing
  /// changed, when none is free.
  bool grow(Owner owner, std::int64_t needed, std::int64_t last);

  void release(Owner owner);

  /// Slots of `owner`'s region.
  std::int64_t size(Owner owner) const { return regions_[owner].size; }
  const RegionSpace& space() const { return space_; }

  /// Free slots of no use to a region of the size that place() was asked for last: the next
  /// request's, while it waits for one.
  std::int64_t external();

 private:
  RegionRule rule_;
  std::int64_t longest_;
  RegionSpace space_;
  std::vector<Region> regions_;  ///< by owner
  std::int64_t last_size_;
  std::int64_t external_ = 0;  ///< for external_size_, at external_version_
  std::int64_t external_size_ = -1;
  std::uint64_t external_version_ = 0;
};

}  // namespace servesim
