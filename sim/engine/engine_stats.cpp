#include "engine/engine_stats.hpp"

#include <algorithm>

namespace servesim {

void EngineStats::add(const EngineStats& other) {
  steps += other.steps;
  scheduled_seqs += other.scheduled_seqs;
  scheduled_tokens += other.scheduled_tokens;
  busy += other.busy;
  last_step_end = std::max(last_step_end, other.last_step_end);
  for (std::size_t i = 0; i < kComponentCount; ++i) seconds[i] += other.seconds[i];
  flops += other.flops;
  hbm_bytes += other.hbm_bytes;
  kv.used += other.kv.used;
  kv.internal += other.kv.internal;
  kv.reserved += other.kv.reserved;
  kv.external += other.kv.external;
  kv.elapsed_s += other.kv.elapsed_s;
  if (other.kv_peak.allocated > kv_peak.allocated) kv_peak = other.kv_peak;
  preemptions += other.preemptions;
  recomputed_tokens += other.recomputed_tokens;
  prefix_hit_tokens += other.prefix_hit_tokens;
  prefix_queried_tokens += other.prefix_queried_tokens;
  swapped_tokens += other.swapped_tokens;
  copied_tokens += other.copied_tokens;
  offload += other.offload;
}

}  // namespace servesim
