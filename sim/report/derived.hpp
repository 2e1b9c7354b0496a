/// Figures that follow from a RunResult: rates, shares and utilisations.
#pragma once

#include "report/run_result.hpp"

namespace servesim {

/// Per second of the run's duration; all 0 when it has none.
struct Throughput {
  double requests_per_s = 0, good_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
};
Throughput throughput_of(const Metrics& metrics);

/// Shares of the KV pool's bytes, averaged over time and replicas. What is missing to 1 was free.
struct KvShares {
  double used = 0, internal = 0, reserved = 0, external = 0;
  double peak_allocated = 0;  ///< the highest share at any moment
};
KvShares kv_shares_of(const RunResult& result);

/// MFU and MBU are taken over the whole duration, idle time included.
struct EngineRates {
  double mean_batch_size = 0, mean_step_ms = 0, busy_fraction = 0, mfu = 0, mbu = 0;
};
EngineRates engine_rates_of(const RunResult& result);

/// What a run cost: its GPUs, rented for its duration.
struct Cost {
  double gpu_hour_cost = 0, usd = 0;
  double per_million_output_tokens = 0, per_million_tokens = 0;  ///< dollars; 0 without tokens
};
Cost cost_of(double gpu_hour_cost, std::int64_t gpus, double duration_s, double output_tokens,
             double total_tokens);
/// REQUIRES: result.gpu_hour_cost.
Cost cost_of(const RunResult& result);

/// The sums over all replicas; kv_peak_used and last_step_end are the highest.
EngineStats sum_of(const std::vector<EngineStats>& replicas);

}  // namespace servesim
