// The one place where names meet code: a line per thing.
#include "cost/linear_cost_model.hpp"
#include "cost/roofline_cost_model.hpp"
#include "registry/registries.hpp"
#include "sched/policies/policies.hpp"

namespace servesim {
namespace {

void add_policies(Table<PolicyEntry>& policies) {
  policies.add("static",
               "takes a batch, prefills it, decodes until its last sequence has finished, repeats",
               {make_static, true, false, false});
  policies.add(
      "continuous",
      "sequences join and leave at every step; prompts are prefilled whole (vLLM V1 without "
      "chunked prefill)",
      {make_continuous, false, true, false});
  policies.add(
      "chunked",
      "decodes first, the rest of the token budget goes to prompt chunks (vLLM V1 default)",
      {make_chunked, true, true, false});
  policies.add("disaggregated",
               "a pool of chunked prefill replicas and one of decode replicas; KV crosses a link",
               {make_chunked, true, true, true});
}

void add_allocators(Table<AllocatorEntry>& allocators) {
  allocators.add("paged", "vLLM's block pool: prefix caching, reference counts, LRU");
  allocators.add("contiguous:max", "one region per request, of max_model_len tokens", {region_max});
  allocators.add("contiguous:pow2",
                 "one region per request, the next power of two of what it needs, copied when full",
                 {region_pow2});
  allocators.add("contiguous:oracle", "one region per request, of exactly its final length",
                 {region_oracle});
}

void add_evictions(Table<EvictionOrder>& evictions) {
  evictions.add("lru", "what was used least recently goes first", evict_lru);
  evictions.add("lfu", "what was used least often goes first", evict_lfu);
  evictions.add("fifo", "what was stored first goes first", evict_fifo);
}

void add_routers(Table<RouterFactory>& routers) {
  routers.add("round-robin", "each replica in turn", make_round_robin);
  routers.add("random", "any replica", make_random);
  routers.add("least-loaded", "the replica with the fewest tokens outstanding", make_least_loaded);
  routers.add("join-shortest-queue", "the replica with the fewest requests outstanding",
              make_join_shortest_queue);
  routers.add("power-of-two", "of two replicas drawn at random the one with fewer tokens",
              make_power_of_two);
  routers.add("session-sticky", "a session stays where it began; else as least-loaded",
              make_session_sticky);
  routers.add("prefix-aware",
              "the longest prefix sent there before, against the tokens outstanding",
              make_prefix_aware);
}

void add_cost_models(Table<CostModelFactory>& models) {
  models.add("roofline",
             "the sum of the kernels a step runs, each a roofline fitted to measurements",
             [](const CostInputs& in) {
               return std::make_unique<RooflineCostModel>(in.model, in.hardware, in.deployment);
             });
  models.add("linear", "base_us + per_token_us x tokens; for tests of schedulers",
             [](const CostInputs& in) {
               return std::make_unique<LinearCostModel>(in.base_us, in.per_token_us,
                                                        in.deployment.pipeline_parallel);
             });
}

}  // namespace

void register_builtins(Registries& registries) {
  add_policies(registries.policies);
  add_allocators(registries.allocators);
  add_evictions(registries.evictions);
  add_routers(registries.routers);
  add_cost_models(registries.cost_models);
}

}  // namespace servesim
