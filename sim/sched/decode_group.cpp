#include "sched/decode_group.hpp"

namespace servesim {

std::int64_t DecodeGroup::steps_within(std::int64_t free, std::int64_t step) const {
  if (count_ == 0) return 0;
  const std::int64_t cycles =
      free / count_;  // a cycle of block_size steps takes one block per member
  std::int64_t left = free - cycles * count_;
  std::int64_t steps = cycles * block_size_.tokens();
  for (std::int64_t j = 1; j < block_size_.tokens(); ++j) {
    left -= growth(step + j);
    if (left < 0) break;
    ++steps;
  }
  return steps;
}

}  // namespace servesim
