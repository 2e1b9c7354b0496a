#include "synthetic.hpp"

#include "cost/linear_cost_model.hpp"
#include "sched/policies/policies.hpp"

namespace servesim::bench {

std::vector<EngineStats> run_engine(const EngineSetup& setup, TraceReader& trace,
                                    Observer& observer) {
  ClusterConfig config;
  config.scheduler.max_num_seqs = setup.max_num_seqs;
  config.scheduler.max_num_batched_tokens = 8192;
  config.scheduler.max_model_len = 131072;
  config.scheduler.num_gpu_blocks = setup.num_gpu_blocks;
  config.scheduler.enable_prefix_caching = setup.prefix_caching;
  config.scheduler.async_scheduling = setup.async_scheduling;
  config.replicas = setup.replicas;
  ClusterParts parts;
  parts.make_policy = make_chunked;
  parts.make_router = make_least_loaded;
  parts.make_cost_model = [&] {
    return std::make_unique<LinearCostModel>(static_cast<double>(setup.base_us),
                                             static_cast<double>(setup.per_token_us));
  };
  RunControl control;
  return simulate(config, parts, trace, observer, nullptr, nullptr, control);
}

}  // namespace servesim::bench
