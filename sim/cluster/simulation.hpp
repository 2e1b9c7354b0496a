/// One run: a trace through one or more replicas on one global event queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cluster/router.hpp"
#include "cost/step_cost_model.hpp"
#include "engine/engine_stats.hpp"
#include "engine/observer.hpp"
#include "net/flow_network.hpp"
#include "sched/batch_policy.hpp"
#include "sched/schedule_log.hpp"
#include "sched/scheduler_config.hpp"
#include "workload/trace_reader.hpp"

namespace servesim {

/// Host-side times of one engine; all zero in `linear` and --engine-config runs.
struct HostTimes {
  SimTime
      step;  ///< scheduling and input preparation of a step; hidden behind the GPU where it can be
  SimTime front_before;  ///< from the client's send to the scheduler's queue
  SimTime front_after;   ///< from the end of a step to the client seeing its tokens
};

/// The decode side of a run whose prefill and decode are on different replicas, and how KV gets
/// there.
struct DisaggregatedConfig {
  SchedulerConfig scheduler;  ///< of the decode replicas
  HostTimes host;             ///< likewise
  std::int64_t replicas = 1;  ///< likewise
  bool push = false;          ///< layer by layer while the prompt is computed, else pulled after it
  std::int64_t layers = 1;    ///< of the model
  double block_bytes = 0;     ///< KV of a block, all ranks together
  std::shared_ptr<const Topology> topology;
  /// Where each replica's KV leaves and enters, the prefill ones first: a vertex for each GPU, or
  /// one for all.
  std::vector<std::vector<VertexId>> ports;
};

/// Something that happens to the cluster at a given time.
struct ScenarioEvent {
  enum class Kind : std::uint8_t { kReplicaDown, kReplicaUp, kLink };
  SimTime at;
  Kind kind = Kind::kReplicaDown;
  std::size_t replica = 0;  ///< prefill replicas first
  LinkId link = 0;
  double bandwidth = 1;  ///< of the link, as a share of its own; 0: down
};

struct ClusterConfig {
  SchedulerConfig scheduler;
  HostTimes host;
  std::int64_t replicas = 1;
  std::int64_t max_concurrency = 0;  ///< requests in flight at the client; 0: no limit
  std::uint64_t seed = 0;
  /// The engine loop of the recorded schedules, see Replica.
  bool wait_for_arrivals = false;
  /// When set, all that is above describes the prefill replicas.
  std::shared_ptr<const DisaggregatedConfig> disaggregated{};
  std::vector<ScenarioEvent> scenario{};     ///< in order of time
  SimTime request_timeout = SimTime::max();  ///< after which the client gives a request up
  std::int64_t max_queue = 0;                ///< requests that may wait at a replica; 0: no limit
};

/// The parts a run is made of; each call makes a fresh one. All replicas share one cost model.
struct ClusterParts {
  PolicyFactory make_policy;
  std::function<std::shared_ptr<StepCostModel>()> make_cost_model;
  RouterFactory make_router;
  PolicyFactory make_decode_policy{};  ///< of disaggregated runs, as the next
  std::function<std::shared_ptr<StepCostModel>()> make_decode_cost_model{};
};

/// What crossed one link.
struct LinkUse {
  std::string name;
  double bytes_per_s = 0;  ///< in one direction
  LinkStats stats;
};

/// The transfers of a disaggregated run.
struct KvTransferStats {
  std::int64_t transfers = 0;
  double kv_bytes = 0;
  std::int64_t cached_tokens = 0;  ///< of prompts, found on the decode side and not sent
  std::vector<float> transfer_ms;  ///< of each: from its first byte sent to its last one landed
  std::vector<float> wait_ms;      ///< of each: from its blocks taken to its last byte landed
  std::vector<LinkUse> links;      ///< that were used
};

/// What went wrong, and on.
struct FaultStats {
  std::int64_t rerouted = 0;          ///< times a request lost its replica and was sent to another
  std::int64_t failed_transfers = 0;  ///< whose prompt the decode replica computed itself
  std::int64_t timed_out = 0;
  std::int64_t downs = 0;  ///< times a replica went down
};

struct ClusterOutcome {
  FaultStats faults;
  std::vector<EngineStats> engines;  ///< by replica; of disaggregated runs the prefill ones first
  KvTransferStats transfers;
};

/// Shared with the caller while a run goes on; by one run at a time.
struct RunControl {
  std::atomic<bool> stop{false};  ///< set by the caller: end now, what is in flight is `unfinished`
  std::atomic<std::uint64_t> requests_read{0};  ///< sent so far, for progress
  std::atomic<std::int64_t> simulated_ns{0};
};

/// Names of the tickets in a schedule log; tickets are given in the order of the trace when a log
/// is kept.
using TicketNames = std::vector<std::string>;

/// Runs `trace` to its end. Every request of it is reported to `observer` exactly once. With a
/// `log` (REQUIRES: one replica) every step is taken singly and `names` receives the requests' ids
/// by ticket; both may be null. Throws InputError from the trace reader, or when the requests can
/// never finish.
ClusterOutcome run_cluster(const ClusterConfig& config, const ClusterParts& parts,
                           TraceReader& trace, Observer& observer, ScheduleLog* log,
                           TicketNames* names, RunControl& control);

/// The same; returns one EngineStats per replica.
inline std::vector<EngineStats> simulate(const ClusterConfig& config, const ClusterParts& parts,
                                         TraceReader& trace, Observer& observer, ScheduleLog* log,
                                         TicketNames* names, RunControl& control) {
  return run_cluster(config, parts, trace, observer, log, names, control).engines;
}

}  // namespace servesim
