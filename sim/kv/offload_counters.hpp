/// What happened between a KV pool and the tiers below it.
#pragma once

#include <cstdint>

namespace servesim {

struct OffloadCounters {
  std::int64_t stored_blocks = 0;
  std::int64_t loaded_blocks = 0;
  std::int64_t dropped_blocks = 0;     ///< the write-back queue was full
  std::int64_t evicted_blocks = 0;     ///< from the lowest tier
  std::int64_t recomputed_blocks = 0;  ///< found, but cheaper to compute again

  OffloadCounters& operator+=(const OffloadCounters& other) {
    stored_blocks += other.stored_blocks;
    loaded_blocks += other.loaded_blocks;
    dropped_blocks += other.dropped_blocks;
    evicted_blocks += other.evicted_blocks;
    recomputed_blocks += other.recomputed_blocks;
    return *this;
  }
};

}  // namespace servesim
