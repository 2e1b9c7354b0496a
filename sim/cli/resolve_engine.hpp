/// One engine of a run: the part of the resolution that the pools of a disaggregated run share.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/resolve.hpp"

namespace servesim {

/// An engine with every choice made.
struct Resolver::Engine {
  CostInputs inputs;
  SchedulerConfig scheduler;
  HostTimes host;
  std::function<std::unique_ptr<StepCostModel>()> make_cost_model;
  nlohmann::json config;  ///< all but the scheduler's settings
};

KvFacts kv_facts_of(const std::string& allocator, const SchedulerConfig& scheduler,
                    std::int64_t tensor_parallel);
nlohmann::json scheduler_json(const SchedulerConfig& scheduler);
nlohmann::json host_json(const HostTimes& host);

/// Layers with a window free the blocks behind it where vLLM's hybrid KV cache manager is modelled:
/// in a paged pool without prefix caching, unless its KV is sent elsewhere. Warns where they do
/// not.
void resolve_layer_groups(Resolver::Engine& engine, bool disaggregated,
                          std::vector<std::string>& warnings);

/// What moving KV costs, the swap space and the tiers below HBM, into the scheduler's settings and
/// the configuration. `make` prices what loading is weighed against.
void resolve_moves(const RunSpec& spec, const CostModelFactory& make, const Registries& registries,
                   Resolver::Engine& engine);

/// The scenario, the admission limit and the timeout. Throws InputError for replicas and links that
/// are not there.
void resolve_faults(const RunSpec& spec, ResolvedRun& run);

/// Refuses flags of pools without the policy that has them, and the other way round.
void check_pools(const RunSpec& spec, const PolicyEntry& policy, const std::string& policy_name);

}  // namespace servesim
