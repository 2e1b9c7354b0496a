/// Everything that can be chosen by name, in one place. Passed by reference, so that a test can
/// make its own.
#pragma once

#include <functional>
#include <memory>

#include "cluster/router.hpp"
#include "cost/rank_costs.hpp"
#include "cost/step_cost_model.hpp"
#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"
#include "registry/table.hpp"
#include "sched/batch_policy.hpp"

namespace servesim {

/// What a cost model is made from.
struct CostInputs {
  ModelSpec model;
  HardwareSpec hardware;
  DeploymentSpec deployment;
  double base_us = 0;       ///< linear
  double per_token_us = 0;  ///< linear
};
using CostModelFactory = std::function<std::unique_ptr<StepCostModel>(const CostInputs&)>;

/// What a batching policy asks of the scheduler's settings.
struct PolicyEntry {
  PolicyFactory make;
  bool chunked_prefill = true;  ///< prompts may be computed in chunks
  bool vllm_engine = true;      ///< has prefix caching, asynchronous scheduling, speculation
  bool disaggregated = false;   ///< prefill and decode are on different replicas
};

/// How KV memory is given out: in blocks, or in contiguous regions sized by a rule.
struct AllocatorEntry {
  RegionRule region_rule = nullptr;  ///< null: paged
};

struct Registries {
  Table<PolicyEntry> policies{"policy"};
  Table<AllocatorEntry> allocators{"KV allocator"};
  Table<EvictionOrder> evictions{"eviction order"};
  Table<RouterFactory> routers{"router"};
  Table<CostModelFactory> cost_models{"step-time model"};
};

/// Adds all that ships.
void register_builtins(Registries& registries);

}  // namespace servesim
