/// Sums over the life of one engine (or of all, added up).
#pragma once

#include <array>
#include <cstdint>

#include "core/time.hpp"
#include "cost/step_cost_model.hpp"

namespace servesim {

/// KV bytes of one engine integrated over time, in byte-seconds of the pool divided by bytes per
/// token, that is in token-seconds. used + internal + reserved + external + free = capacity_tokens
/// * elapsed.
struct KvIntegral {
  double used = 0;      ///< holds a computed token
  double internal = 0;  ///< allocated, not yet filled, inside a last block
  double reserved = 0;  ///< allocated for tokens that have not come
  double external = 0;  ///< free, but of no use to the next request
  double elapsed_s = 0;
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
  double kv_peak_used = 0;  ///< most tokens' worth of slots that were allocated at once
  std::int64_t preemptions = 0;
  std::int64_t recomputed_tokens = 0;  ///< computed again because a preemption had thrown them away
  std::int64_t prefix_hit_tokens = 0;
  std::int64_t prefix_queried_tokens = 0;  ///< prompt tokens that admissions looked up

  /// Adds up; kv_peak_used and last_step_end become the higher of both.
  void add(const EngineStats& other);
};

}  // namespace servesim
