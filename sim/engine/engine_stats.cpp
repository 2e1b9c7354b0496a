#include "engine/engine_stats.hpp"

#include <algorithm>

namespace servesim {

void EngineStats::add(const EngineStats& other) {
  SchedulerCounters::operator+=(other);
  steps += other.steps;
  scheduled_seqs += other.scheduled_seqs;
  scheduled_tokens += other.scheduled_tokens;
  busy += other.busy;
  bubbles += other.bubbles;
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
}

}  // namespace servesim
