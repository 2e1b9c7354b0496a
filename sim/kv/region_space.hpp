/// A contiguous address space for KV: what systems without paging allocate from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace servesim {

/// Token slots [begin, begin + size).
struct Region {
  std::int64_t begin = 0;
  std::int64_t size = 0;

  std::int64_t end() const { return begin + size; }
};

/// First fit over holes kept in address order, neighbours coalesced on release (Knuth, The Art of
/// Computer Programming, volume 1, section 2.5). Cost per call is linear in the number of holes.
class RegionSpace {
 public:
  /// REQUIRES: slots >= 1.
  explicit RegionSpace(std::int64_t slots) : slots_(slots), free_(slots) { holes_[0] = slots; }

  /// The lowest region of `size` slots that is free, or nothing. REQUIRES: size >= 1.
  std::optional<Region> place(std::int64_t size);

  /// Gives a placed region back.
  void release(const Region& region);

  std::int64_t free() const { return free_; }
  std::int64_t used() const { return slots_ - free_; }
  std::int64_t largest_hole() const;
  /// Free slots that no region of `size` slots can use: those in holes smaller than it.
  std::int64_t unusable_for(std::int64_t size) const;
  /// Changes with every call that changes the holes.
  std::uint64_t version() const { return version_; }

  /// Throws std::logic_error when the space contradicts itself.
  void check_integrity() const;

 private:
  std::int64_t slots_;
  std::int64_t free_;
  std::map<std::int64_t, std::int64_t> holes_;  ///< begin -> size
  std::uint64_t version_ = 0;
};

}  // namespace servesim
