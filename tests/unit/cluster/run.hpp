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

/// A policy whose state is checked after every change.
class CheckedPolicy : public BatchPolicy {
 public:
  explicit CheckedPolicy(std::unique_ptr<BatchPolicy> policy) : policy_(std::move(policy)) {}
  void add(const NewSequence& sequence) override {
    checked([&] { policy_->add(sequence); });
  }
  const StepPlan& plan(SimTime now) override {
    const StepPlan* result = nullptr;
    checked([&] { result = &policy_->plan(now); });
    return *result;
  }
  void extend(std::int64_t steps, std::int64_t committed, std::int64_t blocks,
              SimTime last_done) override {
    checked([&] { policy_->extend(steps, committed, blocks, last_done); });
  }
  void commit(SimTime done) override {
    checked([&] { policy_->commit(done); });
  }
  bool live() const override { return policy_->live(); }
  bool has_unfinished() const override { return policy_->has_unfinished(); }
  bool arrival_matters() const override { return policy_->arrival_matters(); }
  int batches_in_flight() const override { return policy_->batches_in_flight(); }
  bool release_kv(Ticket ticket) override {
    bool result = false;
    checked([&] { result = policy_->release_kv(ticket); });
    return result;
  }
  void kv_arrived(Ticket ticket) override {
    checked([&] { policy_->kv_arrived(ticket); });
  }
  KvUsage kv_usage() override { return policy_->kv_usage(); }
  void kv_failed(Ticket ticket) override {
    checked([&] { policy_->kv_failed(ticket); });
  }
  SequenceOutcome abort(Ticket ticket) override {
    SequenceOutcome outcome;
    checked([&] { outcome = policy_->abort(ticket); });
    return outcome;
  }
  std::int64_t waiting() const override { return policy_->waiting(); }
  std::int64_t block_size() const override { return policy_->block_size(); }
  const SchedulerCounters& counters() const override { return policy_->counters(); }
  void check_integrity() const override { policy_->check_integrity(); }

 private:
  template <typename Action>
  void checked(Action action) {
    action();
    policy_->check_integrity();
    const KvUsage kv = policy_->kv_usage();
    REQUIRE(kv.internal >= 0);
    REQUIRE(kv.reserved >= 0);
    REQUIRE(kv.allocated >= kv.internal + kv.reserved);
  }
  std::unique_ptr<BatchPolicy> policy_;
};

inline std::unique_ptr<BatchPolicy> make_checked(const SchedulerConfig& config, SequenceSink& sink,
                                                 ScheduleLog* log, std::uint64_t seed) {
  return std::make_unique<CheckedPolicy>(make_chunked(config, sink, log, seed));
}

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
    const auto price = [stages = config.scheduler.pipeline_parallel] {
      return std::make_unique<LinearCostModel>(1000, 10, stages);
    };
    ClusterParts parts{policy, price, router, policy, price};
    outcome = run_cluster(config, parts, trace, fates, nullptr, nullptr, control);
    stats = outcome.engines;
    return fates.seen;
  }
  ClusterOutcome outcome;
  std::vector<EngineStats> stats;
};

}  // namespace servesim::testing
