/// Sums over the life of one engine (or of all, added up).
#pragma once

#include <array>
#include <cstdint>

#include "core/time.hpp"
#include "cost/step_cost_model.hpp"
#include "sched/batch_policy.hpp"

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

struct EngineStats : SchedulerCounters {
  std::int64_t steps = 0;           ///< steps with at least one token
  std::int64_t scheduled_seqs = 0;  ///< sum of sequences over steps: / steps = mean batch size
  std::int64_t scheduled_tokens = 0;
  SimTime busy;     ///< time in which a step ran; of a pipeline, the mean over its stages
  SimTime bubbles;  ///< time in which stages of a pipeline stood idle while others ran, their mean
  SimTime last_step_end;
  std::array<double, kComponentCount> seconds{};
  double flops = 0;
  double hbm_bytes = 0;
  KvIntegral kv;
  KvUsage kv_peak;  ///< at the moment when most of the pool was allocated

  /// Adds up; kv_peak and last_step_end become the higher of both.
  void add(const EngineStats& other);
};

}  // namespace servesim
