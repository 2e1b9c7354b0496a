/// One run: a trace through one or more replicas on one global event queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cost/step_cost_model.hpp"
#include "engine/engine_stats.hpp"
#include "engine/observer.hpp"
#include "sched/scheduler_config.hpp"
#include "workload/trace_reader.hpp"

namespace servesim {

class BatchPolicy;
class Router;
class ScheduleLog;

/// Host-side times of one engine; all zero in `linear` and --engine-config runs.
struct HostTimes {
  SimTime
      step;  ///< scheduling and input preparation of a step; hidden behind the GPU where it can be
  SimTime front_before;  ///< from the client's send to the scheduler's queue
  SimTime front_after;   ///< from the end of a step to the client seeing its tokens
};

struct ClusterConfig {
  SchedulerConfig scheduler;
  HostTimes host;
  std::int64_t replicas = 1;
  std::int64_t max_concurrency = 0;  ///< requests in flight at the client; 0: no limit
  std::uint64_t seed = 0;
};

/// The parts a run is made of; each call makes a fresh one.
struct ClusterParts {
  std::function<std::unique_ptr<BatchPolicy>(const SchedulerConfig&)> make_policy;
  std::function<std::unique_ptr<StepCostModel>()> make_cost_model;
  std::function<std::unique_ptr<Router>()> make_router;
};

/// Shared with the caller while a run goes on.
struct RunControl {
  std::atomic<bool> stop{false};  ///< set by the caller: end now, what is in flight is `unfinished`
  std::atomic<std::uint64_t> requests_read{0};  ///< from the trace so far, for progress
  std::atomic<std::int64_t> simulated_ns{0};
};

/// Runs `trace` to its end. Every request of it is reported to `observer` exactly once. `log` may
/// be null; with one, every step is taken singly (replicas must be 1). Returns one EngineStats per
/// replica. Throws InputError from the trace reader.
std::vector<EngineStats> simulate(const ClusterConfig& config, const ClusterParts& parts,
                                  TraceReader& trace, Observer& observer, ScheduleLog* log,
                                  RunControl& control);

}  // namespace servesim
