#include "kv/region_table.hpp"

namespace servesim {

bool RegionTable::place(Owner owner, std::int64_t needed, std::int64_t last) {
  last_size_ = size_for(needed, last);
  const std::optional<Region> region = space_.place(last_size_);
  if (!region) return false;
  if (regions_.size() <= owner) regions_.resize(owner + 1);
  regions_[owner] = *region;
  return true;
}

bool RegionTable::grow(Owner owner, std::int64_t needed, std::int64_t last) {
  const std::optional<Region> region = space_.place(size_for(needed, last));
  if (!region) return false;
  space_.release(regions_[owner]);
  regions_[owner] = *region;
  return true;
}

void RegionTable::release(Owner owner) {
  space_.release(regions_[owner]);
  regions_[owner] = Region{};
}

std::int64_t RegionTable::external() {
  if (last_size_ != external_size_ || external_version_ != space_.version()) {
    external_ = space_.unusable_for(last_size_);
    external_size_ = last_size_;
    external_version_ = space_.version();
  }
  return external_;
}

}  // namespace servesim
