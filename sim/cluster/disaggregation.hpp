/// Prefill on some replicas, decode on others, and the KV cache on its way between them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/replica_clock.hpp"
#include "cluster/router.hpp"
#include "cluster/simulation.hpp"
#include "engine/replica.hpp"
#include "net/flow_network.hpp"

namespace servesim {

/// Follows each request from the end of its prefill to the arrival of its KV at a decode replica.
///
/// pull (vLLM's NIXL connector): the prefill replica computes the prompt and one token, which is
/// thrown away, and keeps the blocks. Then the request goes to a decode replica, which takes blocks
/// for the prompt as soon as they fit, and reads into them what its own prefix cache lacks. When
/// all of it is there the prefill replica frees its blocks and the request waits to run; its first
/// step computes the prompt's last token again and yields the first token that the client sees.
///
/// push: the request goes to both replicas at once, and each layer's KV is sent when it is
/// computed, if the decode replica has blocks by then. Of a step that computes b bytes over L
/// layers (L-1)/L * b are sent from the end of its first layer on, the rest from its end.
///
/// A transfer is one flow for each pair of ranks that hold the same heads; whole blocks move.
class Disaggregation {
 public:
  /// Replicas and loads: the prefill ones first. `self` is the clock's actor that act() is due for.
  Disaggregation(const DisaggregatedConfig& config, SimTime prefill_front_after,
                 std::size_t prefill_replicas, std::unique_ptr<Router> decode_router,
                 std::vector<std::unique_ptr<Replica>>& replicas, std::vector<ReplicaLoad>& loads,
                 ReplicaClock& clock);

  /// A request that `prefill` begins `now`; `sequence` is what it is told, which this changes.
  void begin(NewSequence& sequence, const Request& request, std::size_t prefill, SimTime now);

  /// Whether a sequence that has ended was the prefill of its request, which then goes on.
  bool prefill_ended(Ticket ticket, const SequenceOutcome& outcome);
  /// The other half has ended: completes `outcome` with what the prefill knows of it.
  void decode_ended(Ticket ticket, SequenceOutcome& outcome);
  std::size_t decode_replica(Ticket ticket) const { return transfers_[ticket].decode; }

  void kv_wanted(Ticket ticket, std::int64_t cached, std::int64_t blocks, SimTime now);
  void kv_planned(Ticket ticket, std::int64_t upto);
  void step_launched(SimTime begin, SimTime end);

  /// When act() is due.
  SimTime next_event() const;
  void act(SimTime now);

  KvTransferStats stats(SimTime now) const;

 private:
  enum class Phase : std::uint8_t { kPrefill, kHandOver, kDecode };
  struct Transfer {
    Request request;  ///< for the decode replica
    std::int64_t session = -1;
    std::size_t prefill = 0, decode = 0;
    Phase phase = Phase::kPrefill;
    bool wanted = false;           ///< the decode replica has blocks for it
    std::int64_t first_block = 0;  ///< that is to be sent; those before are cached there
    std::int64_t last_block = 0;   ///< one past
    double ready = 0;              ///< bytes of the prompt's blocks that are computed
    double sent = 0;               ///< bytes from the first block on, whose flows have started
    std::int64_t planned = 0;      ///< blocks whose computation is planned
    std::int64_t flows = 0;        ///< under way
    SimTime wanted_since, first_flow;
    SequenceOutcome prefill_outcome;
  };
  enum class DueKind : std::uint8_t { kHandOver, kComputed, kComplete };
  /// Something that happens to a request.
  struct Due {
    DueKind kind;
    Ticket ticket;
    double bytes = 0;  ///< that have been computed
  };

  void hand_over(Ticket ticket, SimTime now);
  void send_what_is_ready(Ticket ticket, SimTime now);
  void flow_landed(const FlowDone& done, SimTime now);
  bool all_landed(const Transfer& transfer) const;
  void complete(Ticket ticket, SimTime now);
  void reschedule(std::size_t replica);
  double block_bytes() const { return config_.block_bytes; }

  const DisaggregatedConfig& config_;
  SimTime prefill_front_after_;
  std::size_t prefill_replicas_;
  std::unique_ptr<Router> router_;
  std::vector<std::unique_ptr<Replica>>& replicas_;
  std::vector<ReplicaLoad>& loads_;
  ReplicaClock& clock_;
  FlowNetwork network_;
  EventQueue<Due> due_;
  std::vector<Transfer> transfers_;  ///< by ticket
  struct Planned {
    Ticket ticket;
    std::int64_t blocks;  ///< computed by the step
  };
  std::vector<Planned> planned_;  ///< by the step that is being planned
  KvTransferStats stats_;
};

}  // namespace servesim
