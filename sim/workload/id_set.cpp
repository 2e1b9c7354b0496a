#include "workload/id_set.hpp"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace servesim {

bool IdSet::insert(std::string_view id) {
  if ((size_ + 1) * 4 > slots_.size() * 3) {
    const std::vector<std::uint64_t> old = std::exchange(
        slots_, std::vector<std::uint64_t>(std::max<std::size_t>(64, slots_.size() * 2)));
    for (const std::uint64_t hash : old) {
      if (hash != 0) place(hash);
    }
  }
  const bool is_new = place(std::max<std::uint64_t>(1, XXH3_64bits(id.data(), id.size())));
  if (is_new) ++size_;
  return is_new;
}

bool IdSet::place(std::uint64_t hash) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != 0) {
    if (slots_[slot] == hash) return false;
    slot = (slot + 1) & mask;
  }
  slots_[slot] = hash;
  return true;
}

}  // namespace servesim
