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

/// Time that the engines had: the duration ends with the last token that a client got, and engines
/// may work on for clients that have given up.
double available_s(const EngineResult& result, double duration_s) {
  constexpr double kMoreThanRounding = 1 + 1e-9;
  const double duration = duration_s * static_cast<double>(result.replicas);
  const double elapsed = result.engine.kv.elapsed_s;
  return elapsed > duration * kMoreThanRounding ? elapsed : duration;
}

}  // namespace

Throughput throughput_of(const Metrics& m) {
  const auto per_second = [&m](std::int64_t n) {
    return ratio(static_cast<double>(n), m.duration_s);
  };
  return {per_second(m.completed), per_second(m.good), per_second(m.total_output_tokens),
          per_second(m.total_input_tokens + m.total_output_tokens)};
}

const EngineResult& kv_pool_of(const RunResult& result) {
  return result.pools.empty() ? static_cast<const EngineResult&>(result) : result.pools.back();
}

KvShares kv_shares_of(const EngineResult& result) {
  const KvIntegral& kv = result.engine.kv;
  const double all = static_cast<double>(result.kv.capacity_slots) * kv.elapsed_s;
  return shares(kv.used, kv.internal, kv.reserved, kv.external, all);
}

KvShares kv_shares_at_peak(const EngineResult& result) {
  const KvUsage& peak = result.engine.kv_peak;
  const auto d = [](std::int64_t tokens) { return static_cast<double>(tokens); };
  return shares(d(peak.allocated - peak.internal - peak.reserved), d(peak.internal),
                d(peak.reserved), d(peak.external), d(result.kv.capacity_slots));
}

double kv_peak_allocated(const EngineResult& result) {
  return ratio(static_cast<double>(result.engine.kv_peak.allocated),
               static_cast<double>(result.kv.capacity_slots));
}

EngineRates engine_rates_of(const EngineResult& result, double duration_s) {
  const EngineStats& e = result.engine;
  const double steps = static_cast<double>(e.steps);
  const double available = available_s(result, duration_s);
  return {ratio(static_cast<double>(e.scheduled_seqs), steps),
          ratio(e.busy.ms(), steps),
          ratio(e.busy.seconds(), available),
          ratio(e.bubbles.seconds(), (e.busy + e.bubbles).seconds()),
          ratio(e.flops, result.peak_flops * available),
          ratio(e.hbm_bytes, result.peak_bytes_per_s * available)};
}

EngineRates engine_rates_of(const RunResult& result) {
  return engine_rates_of(static_cast<const EngineResult&>(result), result.metrics.duration_s);
}

Cost cost_of(double gpu_hour_cost, std::int64_t gpus, double duration_s, double output_tokens,
             double total_tokens) {
  constexpr double kSecondsPerHour = 3600;
  constexpr double kMillion = 1e6;
  const double usd = gpu_hour_cost * static_cast<double>(gpus) * duration_s / kSecondsPerHour;
  const auto per_million = [&](double tokens) {
    return tokens > 0 ? std::optional(usd * kMillion / tokens) : std::nullopt;
  };
  return {gpu_hour_cost, usd, per_million(output_tokens), per_million(total_tokens)};
}

Cost cost_of(const RunResult& result) {
  const Metrics& m = result.metrics;
  const auto output = static_cast<double>(m.total_output_tokens);
  const double rented_s = available_s(result, m.duration_s) /
                          static_cast<double>(std::max<std::int64_t>(result.replicas, 1));
  return cost_of(result.gpu_hour_cost.value(), result.gpus, rented_s, output,
                 output + static_cast<double>(m.total_input_tokens));
}

TransferFigures transfer_figures_of(const RunResult& result) {
  TransferFigures figures;
  double sum = 0;
  for (const float wait : result.transfers.wait_ms) sum += static_cast<double>(wait);
  figures.mean_wait_ms = ratio(sum, static_cast<double>(result.transfers.wait_ms.size()));
  for (const LinkUse& link : result.transfers.links) {
    figures.busiest_share = std::max(figures.busiest_share,
                                     ratio(link.stats.busy.seconds(), result.metrics.duration_s));
  }
  return figures;
}

EngineStats sum_of(std::span<const EngineStats> replicas) {
  EngineStats sum;
  for (const EngineStats& stats : replicas) sum.add(stats);
  return sum;
}

}  // namespace servesim
