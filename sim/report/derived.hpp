/// Figures that follow from a RunResult: rates, shares and utilisations.
#pragma once

#include <span>

#include "report/run_result.hpp"

namespace servesim {

/// Per second of the run's duration; all 0 when it has none.
struct Throughput {
  double requests_per_s = 0, good_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
};
Throughput throughput_of(const Metrics& metrics);

/// Shares of the KV pool's bytes, which add up to 1.
struct KvShares {
  double used = 0, internal = 0, reserved = 0, external = 0, free = 0;
};
/// The engines whose KV pool a run's figures are about: of a disaggregated run the decode pool.
const EngineResult& kv_pool_of(const RunResult& result);
/// Averaged over time and replicas.
KvShares kv_shares_of(const EngineResult& result);
/// At the moment when most of the pool of any replica was allocated.
KvShares kv_shares_at_peak(const EngineResult& result);
/// The highest share that was allocated at any moment.
double kv_peak_allocated(const EngineResult& result);

/// MFU and MBU are taken over the whole duration, idle time included.
struct EngineRates {
  double mean_batch_size = 0, mean_step_ms = 0, busy_fraction = 0;
  double bubble_fraction = 0;  ///< of a pipeline: idle time of stages while others ran
  double mfu = 0, mbu = 0;
};
EngineRates engine_rates_of(const EngineResult& result, double duration_s);
/// The same; of a disaggregated run those of all its engines.
EngineRates engine_rates_of(const RunResult& result);

/// What the links and waits of a disaggregated run come to; zeros without transfers.
struct TransferFigures {
  double mean_wait_ms = 0;   ///< from the decode side's blocks taken to the KV landed
  double busiest_share = 0;  ///< of the duration, in which the busiest link was in use
};
TransferFigures transfer_figures_of(const RunResult& result);

/// What a run cost: its GPUs, rented for its duration, or as long as they worked beyond it.
struct Cost {
  double gpu_hour_cost = 0, usd = 0;
  /// Dollars; none without tokens.
  std::optional<double> per_million_output_tokens, per_million_tokens;
};
Cost cost_of(double gpu_hour_cost, std::int64_t gpus, double duration_s, double output_tokens,
             double total_tokens);
/// REQUIRES: result.gpu_hour_cost.
Cost cost_of(const RunResult& result);

/// The sums over all replicas; kv_peak and last_step_end are the highest.
EngineStats sum_of(std::span<const EngineStats> replicas);

}  // namespace servesim
