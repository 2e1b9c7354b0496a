/// Figures that follow from a RunResult: rates, shares and utilisations.
#pragma once

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
/// Averaged over time and replicas.
KvShares kv_shares_of(const RunResult& result);
/// At the moment when most of the pool of any replica was allocated.
KvShares kv_shares_at_peak(const RunResult& result);
/// The highest share that was allocated at any moment.
double kv_peak_allocated(const RunResult& result);

/// MFU and MBU are taken over the whole duration, idle time included.
struct EngineRates {
  double mean_batch_size = 0, mean_step_ms = 0, busy_fraction = 0, mfu = 0, mbu = 0;
};
EngineRates engine_rates_of(const RunResult& result);

/// The sums over all replicas; kv_peak and last_step_end are the highest.
EngineStats sum_of(const std::vector<EngineStats>& replicas);

}  // namespace servesim
