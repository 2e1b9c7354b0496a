/// The sequences that get exactly one token in every step, as aggregates.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/block_size.hpp"

namespace servesim {

/// Between two changes of its membership every step is the last one with one more token per
/// sequence, so the group keeps each member by its `base` = computed - step: sums over the members
/// then follow from the step number, and blocks fall due by the members' phase. A member's `growth`
/// is the number of blocks that then fall due, and of slots that each of its tokens fills: one for
/// every group of layers that keeps the token (KvDemand).
class DecodeGroup {
 public:
  explicit DecodeGroup(BlockSize block_size)
      : block_size_(block_size), growth_(static_cast<std::size_t>(2 * block_size.tokens()), 0) {}

  std::int64_t count() const { return count_; }

  /// Slots that a token of every member fills.
  std::int64_t slots() const { return slots_; }

  /// Tokens computed before step `step`, summed over the members.
  std::int64_t context(std::int64_t step) const { return base_sum_ + count_ * (step - 1); }

  /// Blocks that the members allocate in step `step`.
  std::int64_t growth(std::int64_t step) const { return growth_[phase(step)]; }
  const std::int32_t* growth_table() const { return growth_.data(); }
  std::size_t phase(std::int64_t step) const {
    return static_cast<std::size_t>(block_size_.mod_floor(step - 1));
  }
  /// Whether the member with this base allocates a block in step `step`.
  bool grows(std::int64_t base, std::int64_t step) const { return slot(base) == phase(step); }

  static constexpr std::int64_t kForever = std::int64_t{1} << 60;  ///< steps

  /// Steps after `step` (each one allocating) that `free` blocks last for.
  std::int64_t steps_within(std::int64_t free, std::int64_t step) const;

  void join(std::int64_t base, std::int64_t growth = 1) {
    ++count_;
    base_sum_ += base;
    add_growth(base, growth);
  }
  /// REQUIRES: a member with this base and this growth.
  void leave(std::int64_t base, std::int64_t growth = 1) {
    --count_;
    base_sum_ -= base;
    add_growth(base, -growth);
  }

 private:
  void add_growth(std::int64_t base, std::int64_t change) {
    slots_ += change;
    const std::size_t first = slot(base);
    growth_[first] += static_cast<std::int32_t>(change);
    growth_[first + static_cast<std::size_t>(block_size_.tokens())] +=
        static_cast<std::int32_t>(change);
  }

  /// Index into growth_: a member allocates when computed = base + step - 1 is a multiple of the
  /// block size.
  std::size_t slot(std::int64_t base) const {
    return static_cast<std::size_t>(block_size_.mod_floor(-base));
  }

  BlockSize block_size_;
  std::int64_t count_ = 0;
  std::int64_t base_sum_ = 0;
  std::int64_t slots_ = 0;  ///< sum of the members' growths
  std::vector<std::int32_t>
      growth_;  ///< the same by the step (mod block_size) at which they need blocks
};

}  // namespace servesim
