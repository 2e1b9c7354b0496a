/// Prefill on some replicas, decode on others, and the KV cache on its way between them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/replica_clock.hpp"
#include "cluster/router.hpp"
#include "cluster/simulation.hpp"
#include "engine/observer.hpp"
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
  /// Replicas and loads: the prefill ones first.
  Disaggregation(const DisaggregatedConfig& config, SimTime prefill_front_after,
                 std::size_t prefill_replicas, std::unique_ptr<Router> decode_router,
                 std::vector<std::unique_ptr<Replica>>& replicas, std::vector<ReplicaLoad>& loads,
                 ReplicaClock& clock);

  /// A request that `prefill` begins `now`; `sequence` is what it is told, which this changes.
  void begin(NewSequence& sequence, const Request& request, std::size_t prefill, SimTime now);

  /// Whether a sequence that has ended was the prefill of its request, which then goes on.
  bool prefill_ended(Ticket ticket, const SequenceOutcome& outcome);
  /// The other half has ended: its outcome, completed with what the prefill knows of it.
  SequenceOutcome decode_ended(Ticket ticket, SequenceOutcome outcome);
  std::size_t decode_replica(Ticket ticket) const { return transfers_[ticket].decode; }

  void kv_wanted(Ticket ticket, std::int64_t cached, std::int64_t blocks, SimTime now);
  void kv_planned(Ticket ticket, std::int64_t upto);
  void step_launched(SimTime begin, SimTime end);

  /// A replica is down, and another stands in its place with nothing cached. Returns the requests
  /// that are to begin anew; the others go on with what is left of them.
  std::vector<Ticket> replica_down(std::size_t replica, SimTime now);
  /// A decode replica is up again.
  void replica_up(SimTime now);
  void set_bandwidth(LinkId link, double share, SimTime now);
  /// The client has given the request up, which had come so far.
  SequenceOutcome abandon(Ticket ticket, SimTime now);
  std::int64_t failed_transfers() const { return failed_; }

  /// When act() is due.
  SimTime next_event();
  void act(SimTime now);

  KvTransferStats stats(SimTime now) const;

  /// Tells `observer` of every transfer and of what crosses the links.
  void watch(Observer& observer) { observer_ = &observer; }

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  enum class Phase : std::uint8_t { kPrefill, kHandOver, kDecode };
  struct Transfer {
    Request request;  ///< for the decode replica
    std::int64_t session = -1;
    std::size_t prefill = 0, decode = kNowhere;
    Phase phase = Phase::kPrefill;
    std::uint32_t generation = 0;  ///< tells this request from the next with its ticket
    bool live = false;
    bool kept = false;             ///< the prefill replica keeps its blocks
    bool failed = false;           ///< the decode replica computes the prompt itself
    bool wanted = false;           ///< the decode replica has blocks for it
    std::int64_t first_block = 0;  ///< that is to be sent; those before are cached there
    std::int64_t last_block = 0;   ///< one past
    double ready = 0;              ///< bytes of the prompt's blocks that are computed
    double sent = 0;               ///< bytes from the first block on, whose flows have started
    std::int64_t planned = 0;      ///< blocks whose computation is planned
    std::vector<FlowId> flows;     ///< under way
    SimTime wanted_since, first_flow;
    SequenceOutcome prefill_outcome;
  };
  enum class DueKind : std::uint8_t { kHandOver, kComputed, kComplete, kFailed };
  /// Something that happens to a request.
  struct Due {
    DueKind kind;
    Ticket ticket;
    std::uint32_t generation;
    double bytes = 0;  ///< that have been computed
  };

  static SequenceOutcome with_prefill(const Transfer& transfer, SequenceOutcome outcome);
  void hand_over(Ticket ticket, SimTime now);
  void send_what_is_ready(Ticket ticket, SimTime now);
  void flow_landed(const FlowDone& done, SimTime now);
  void report_flow(const FlowDone& done);
  bool all_landed(const Transfer& transfer) const;
  void complete(Ticket ticket, SimTime now);
  void cancel_flows(Transfer& transfer, SimTime now);
  void fail(Ticket ticket, SimTime now);
  void release(Ticket ticket, SimTime now);
  SimTime next_expiry();
  SequenceOutcome take_from_decode(Ticket ticket, SimTime now);
  void find_another_decode(Ticket ticket, SimTime now);
  void push_due(DueKind kind, Ticket ticket, SimTime at, double bytes = 0);
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
  /// Blocks that a prefill replica keeps, and until when.
  struct Kept {
    Ticket ticket;
    std::uint32_t generation;
    SimTime until;
  };
  std::deque<Kept> kept_;  ///< the first to expire first
  struct Planned {
    Ticket ticket;
    std::int64_t blocks;  ///< computed by the step
  };
  std::vector<Planned> planned_;  ///< by the step that is being planned
  KvTransferStats stats_;
  std::int64_t failed_ = 0;
  std::vector<Ticket> held_;  ///< that no decode replica is up for
  Observer* observer_ = nullptr;
};

}  // namespace servesim
