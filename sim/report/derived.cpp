#include "report/derived.hpp"

#include <algorithm>

namespace servesim {
namespace {

double ratio(double a, double b) {
  return b > 0 ? a / b : 0.0;
}

KvShares shares(double used, double internal, double reserved, double external, double all) {
  return {ratio(used, all), ratio(internal, all), ratio(reserved, all), ratio(external, all),
          1 - ratio(used + internal + reserved + external, all)};
}

}  // namespace

Throughput throughput_of(const Metrics& m) {
  const auto per_second = [&m](std::int64_t n) {
    return ratio(static_cast<double>(n), m.duration_s);
  };
  return {per_second(m.completed), per_second(m.good), per_second(m.total_output_tokens),
          per_second(m.total_input_tokens + m.total_output_tokens)};
}

KvShares kv_shares_of(const RunResult& result) {
  const KvIntegral& kv = result.engine.kv;
  const double all = static_cast<double>(result.kv.capacity_slots) * kv.elapsed_s;
  return shares(kv.used, kv.internal, kv.reserved, kv.external, all);
}

KvShares kv_shares_at_peak(const RunResult& result) {
  const KvPeak& peak = result.engine.kv_peak;
  const auto d = [](std::int64_t tokens) { return static_cast<double>(tokens); };
  return shares(d(peak.allocated - peak.internal - peak.reserved), d(peak.internal),
                d(peak.reserved), d(peak.external), d(result.kv.capacity_slots));
}

double kv_peak_allocated(const RunResult& result) {
  return ratio(static_cast<double>(result.engine.kv_peak.allocated),
               static_cast<double>(result.kv.capacity_slots));
}

EngineRates engine_rates_of(const RunResult& result) {
  const EngineStats& e = result.engine;
  const double steps = static_cast<double>(e.steps);
  const double available_s = result.metrics.duration_s * static_cast<double>(result.replicas);
  return {ratio(static_cast<double>(e.scheduled_seqs), steps), ratio(e.busy.ms(), steps),
          ratio(e.busy.seconds(), available_s), ratio(e.flops, result.peak_flops * available_s),
          ratio(e.hbm_bytes, result.peak_bytes_per_s * available_s)};
}

EngineStats sum_of(const std::vector<EngineStats>& replicas) {
  EngineStats sum;
  for (const EngineStats& stats : replicas) {
    sum.steps += stats.steps;
    sum.scheduled_seqs += stats.scheduled_seqs;
    sum.scheduled_tokens += stats.scheduled_tokens;
    sum.busy += stats.busy;
    sum.last_step_end = std::max(sum.last_step_end, stats.last_step_end);
    for (std::size_t i = 0; i < kComponentCount; ++i) sum.seconds[i] += stats.seconds[i];
    sum.flops += stats.flops;
    sum.hbm_bytes += stats.hbm_bytes;
    sum.kv.used += stats.kv.used;
    sum.kv.internal += stats.kv.internal;
    sum.kv.reserved += stats.kv.reserved;
    sum.kv.external += stats.kv.external;
    sum.kv.elapsed_s += stats.kv.elapsed_s;
    if (stats.kv_peak.allocated > sum.kv_peak.allocated) sum.kv_peak = stats.kv_peak;
    sum.preemptions += stats.preemptions;
    sum.recomputed_tokens += stats.recomputed_tokens;
    sum.prefix_hit_tokens += stats.prefix_hit_tokens;
    sum.prefix_queried_tokens += stats.prefix_queried_tokens;
    sum.swapped_tokens += stats.swapped_tokens;
    sum.copied_tokens += stats.copied_tokens;
    sum.offload += stats.offload;
  }
  return sum;
}

}  // namespace servesim
