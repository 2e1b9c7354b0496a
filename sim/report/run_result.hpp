/// Everything that one run (trace x configuration) produced, ready to be printed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine_stats.hpp"
#include "report/metrics.hpp"

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

struct RunResult {
  std::string trace;
  std::string policy;
  std::string model;
  std::string hardware;
  nlohmann::json config;  ///< everything resolved that can change the result
  KvFacts kv;
  std::int64_t replicas = 1;
  EngineStats engine;     ///< summed over replicas
  double peak_flops = 0;  ///< of one replica
  double peak_bytes_per_s = 0;
  Metrics metrics;
  std::vector<std::string> warnings;
  double wall_s = 0;
  double cpu_s = 0;
};

}  // namespace servesim
