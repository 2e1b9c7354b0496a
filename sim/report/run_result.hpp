/// Everything that one run (trace x configuration) produced, ready to be printed.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cluster/simulation.hpp"
#include "engine/engine_stats.hpp"
#include "report/metrics.hpp"
#include "report/run_series.hpp"
#include "report/timeline.hpp"

namespace servesim {

/// Facts about the KV pool that do not change during a run.
struct KvFacts {
  std::string allocator;  ///< the --kv word
  std::int64_t num_gpu_blocks = 0;
  std::int64_t block_size = 0;
  std::int64_t capacity_tokens = 0;  ///< of one replica, each token kept by every layer
  std::int64_t capacity_slots = 0;   ///< of one replica; a slot is a token of one group of layers
  double bytes_per_slot = 0;         ///< of the whole model; 0 when there is none
  bool offloads = false;             ///< has tiers below HBM
};

/// What engines that are alike did.
struct EngineResult {
  KvFacts kv;
  std::int64_t replicas = 1;
  EngineStats engine;     ///< summed over replicas
  double peak_flops = 0;  ///< of one replica
  double peak_bytes_per_s = 0;
};

/// One of the pools of a disaggregated run.
struct PoolResult : EngineResult {
  std::string role;  ///< "prefill" or "decode"
  std::string hardware;
};

/// Of disaggregated runs, the inherited part sums the engines of both pools and has the KV facts of
/// the decode pool.
struct RunResult : EngineResult {
  std::string trace;
  std::string policy;
  std::string model;
  std::string hardware;
  nlohmann::json config;                ///< everything resolved that can change the result
  std::int64_t gpus = 1;                ///< of all replicas
  std::optional<double> gpu_hour_cost;  ///< dollars; absent: nobody said
  Metrics metrics;
  std::vector<PoolResult> pools;         ///< of disaggregated runs: prefill, decode
  KvTransferStats transfers;             ///< likewise
  std::optional<FaultStats> faults;      ///< only with a scenario
  std::vector<TimelineBucket> timeline;  ///< likewise
  std::vector<std::string> warnings;
  std::shared_ptr<const RunSeries> series;  ///< for the report; null unless asked for
  double wall_s = 0;
  double cpu_s = 0;
};

}  // namespace servesim
