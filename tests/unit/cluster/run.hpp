/// A run on a list of requests, with a linear step time.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cluster/simulation.hpp"
#include "cost/linear_cost_model.hpp"
#include "list_trace.hpp"
#include "sched/policies/policies.hpp"
#include "support/catch.hpp"

namespace servesim::testing {

class Fates : public Observer {
 public:
  void on_request(const RequestRecord& record) override {
    REQUIRE(seen.try_emplace(record.index, record).second);
  }
  std::map<std::uint64_t, RequestRecord> seen;
};

struct Run {
  ClusterConfig config;
  PolicyFactory policy = make_chunked;
  RouterFactory router = make_round_robin;
  RunControl control;

  Run() {
    config.scheduler.num_gpu_blocks = 1000;
    config.scheduler.async_scheduling = false;
  }
  /// 1 ms per step and 10 us per token.
  std::map<std::uint64_t, RequestRecord> operator()(std::vector<Request> requests) {
    ListTrace trace(std::move(requests));
    Fates fates;
    const auto price = [] { return std::make_unique<LinearCostModel>(1000, 10); };
    ClusterParts parts{policy, price, router, policy, price};
    outcome = run_cluster(config, parts, trace, fates, nullptr, nullptr, control);
    stats = outcome.engines;
    return fates.seen;
  }
  ClusterOutcome outcome;
  std::vector<EngineStats> stats;
};

}  // namespace servesim::testing
