/// Which ids have been seen, in eight bytes or little more each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace servesim {

/// A set of 64-bit hashes of ids. Two ids of ten million share a hash with probability 3e-6.
class IdSet {
 public:
  /// False when `id` is already there.
  bool insert(std::string_view id);
  std::uint64_t size() const { return size_; }

 private:
  bool place(std::uint64_t hash);

  std::vector<std::uint64_t> slots_;  ///< open addressing; 0 is free
  std::uint64_t size_ = 0;
};

}  // namespace servesim
