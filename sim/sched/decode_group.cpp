#include "sched/decode_group.hpp"

namespace servesim {

std::int64_t DecodeGroup::steps_within(std::int64_t free, std::int64_t step) const {
  if (count_ == 0) return 0;
  if (slots_ == 0) return kForever;           // nobody grows any more
  const std::int64_t cycles = free / slots_;  // a cycle of block_size steps takes every growth once
  std::int64_t left = free - cycles * slots_;
  std::int64_t steps = cycles * block_size_.tokens();
  for (std::int64_t j = 1; j < block_size_.tokens(); ++j) {
    left -= growth(step + j);
    if (left < 0) break;
    ++steps;
  }
  return steps;
}

}  // namespace servesim
