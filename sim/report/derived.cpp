#include "report/derived.hpp"

#include <algorithm>

namespace servesim {
namespace {

double ratio(double a, double b) {
  return b > 0 ? a / b : 0.0;
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
  const double all = static_cast<double>(result.kv.capacity_tokens) * kv.elapsed_s;
  return {ratio(kv.used, all), ratio(kv.internal, all), ratio(kv.reserved, all),
          ratio(kv.external, all),
          ratio(result.engine.kv_peak_used, static_cast<double>(result.kv.capacity_tokens))};
}

EngineRates engine_rates_of(const RunResult& result) {
  const EngineStats& e = result.engine;
  const double steps = static_cast<double>(e.steps);
  const double available_s = result.metrics.duration_s * static_cast<double>(result.replicas);
  return {ratio(static_cast<double>(e.scheduled_seqs), steps), ratio(e.busy.ms(), steps),
          ratio(e.busy.seconds(), available_s), ratio(e.flops, result.peak_flops * available_s),
          ratio(e.hbm_bytes, result.peak_bytes_per_s * available_s)};
}

Cost cost_of(double gpu_hour_cost, std::int64_t gpus, double duration_s, double output_tokens,
             double total_tokens) {
  constexpr double kSecondsPerHour = 3600;
  constexpr double kMillion = 1e6;
  const double usd = gpu_hour_cost * static_cast<double>(gpus) * duration_s / kSecondsPerHour;
  return {gpu_hour_cost, usd, ratio(usd * kMillion, output_tokens),
          ratio(usd * kMillion, total_tokens)};
}

Cost cost_of(const RunResult& result) {
  const Metrics& m = result.metrics;
  const auto output = static_cast<double>(m.total_output_tokens);
  return cost_of(result.gpu_hour_cost.value(), result.gpus, m.duration_s, output,
                 output + static_cast<double>(m.total_input_tokens));
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
    sum.kv_peak_used = std::max(sum.kv_peak_used, stats.kv_peak_used);
    sum.preemptions += stats.preemptions;
    sum.recomputed_tokens += stats.recomputed_tokens;
    sum.prefix_hit_tokens += stats.prefix_hit_tokens;
    sum.prefix_queried_tokens += stats.prefix_queried_tokens;
  }
  return sum;
}

}  // namespace servesim
