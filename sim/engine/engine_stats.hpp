/// Sums over the life of one engine (or of all, added up).
#pragma once

#include <array>
#include <cstdint>

#include "core/time.hpp"
#include "cost/step_cost_model.hpp"
#include "kv/offload_counters.hpp"

namespace servesim {

/// KV bytes of one engine integrated over time, in byte-seconds of the pool divided by bytes per
/// slot, that is in slot-seconds. used + internal + reserved + external + free = capacity in slots
/// * elapsed.
struct KvIntegral {
  double used = 0;      ///< holds a computed token
  double internal = 0;  ///< allocated, not yet filled, inside a last block
  double reserved = 0;  ///< allocated for tokens that have not come
  double external = 0;  ///< free, but of no use to the next request
  double elapsed_s = 0;
};

/// The pool at the moment when most of it was allocated, in slots.
struct KvPeak {
  std::int64_t allocated = 0;
  std::int64_t internal = 0;
  std::int64_t reserved = 0;
  std::int64_t external = 0;
};

struct EngineStats {
  std::int64_t steps = 0;           ///< steps with at least one token
  std::int64_t scheduled_seqs = 0;  ///< sum of sequences over steps: / steps = mean batch size
  std::int64_t scheduled_tokens = 0;
  SimTime busy;  ///< time in which a step ran
  SimTime last_step_end;
  std::array<double, kComponentCount> seconds{};
  double flops = 0;
  double hbm_bytes = 0;
  KvIntegral kv;
  KvPeak kv_peak;
  std::int64_t preemptions = 0;
  std::int64_t recomputed_tokens = 0;  ///< computed again because a preemption had thrown them away
  std::int64_t prefix_hit_tokens = 0;
  std::int64_t prefix_queried_tokens = 0;  ///< prompt tokens that admissions looked up
  std::int64_t swapped_tokens = 0;         ///< slots of blocks moved to the host and back
  std::int64_t copied_tokens = 0;          ///< moved to a larger contiguous region
  OffloadCounters offload;

  /// Adds up; kv_peak and last_step_end become the higher of both.
  void add(const EngineStats& other);
};

}  // namespace servesim
