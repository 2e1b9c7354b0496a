/// The state of one run: what simulation.cpp and faults.cpp share.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/client.hpp"
#include "cluster/disaggregation.hpp"
#include "cluster/replica_clock.hpp"
#include "cluster/simulation.hpp"
#include "core/branch_hints.hpp"
#include "engine/replica.hpp"

namespace servesim {

/// A request that was sent and has not ended.
struct Live {
  std::uint64_t index = 0;
  std::string id;
  std::string session_name;
  std::int64_t session = -1;
  SimTime arrival;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int32_t replica = -1;  ///< -1: none is up
  std::uint32_t generation = 0;
  bool live = false;
};

/// Who acts beside the replicas.
enum class Actor : std::uint8_t { kNetwork, kScenario, kDeadlines };

class Simulation : public SequenceSink {
 public:
  Simulation(const ClusterConfig& config, const ClusterParts& parts, TraceReader& trace,
             Observer& observer, ScheduleLog* log, TicketNames* names, RunControl& control);

  ClusterOutcome run();

  void on_finished(Ticket ticket, const SequenceOutcome& outcome) override;
  void on_token_gaps(SimTime gap, std::int64_t count) override {
    observer_.on_token_gaps(gap, count);
  }
  void on_preempted(Ticket ticket, SimTime at) override {
    if (watched_) observer_.on_preempted(tickets_[ticket].index, at);
  }
  void on_resumed(Ticket ticket, SimTime at) override {
    if (watched_) observer_.on_resumed(tickets_[ticket].index, at);
  }
  void on_kv_wanted(Ticket ticket, std::int64_t cached, std::int64_t blocks) override {
    split_->kv_wanted(ticket, cached, blocks, now_);
  }
  void on_kv_planned(Ticket ticket, std::int64_t upto) override {
    split_->kv_planned(ticket, upto);
  }
  void on_step_launched(SimTime begin, SimTime end) override { split_->step_launched(begin, end); }

 private:
  bool is_split() const { return rarely(split_ != nullptr); }
  SimTime next_arrival();
  void act_until(SimTime arrival);
  void settle_rejections();
  void begin(SimTime first_arrival);
  void watch_replica(std::size_t replica);
  void send_next();
  void deliver(const Request& request, std::int64_t session, SimTime now);
  Ticket make_ticket(const Request& request, std::int64_t session);
  void send_to(std::size_t replica, Ticket ticket, const Request& request, std::int64_t session,
               SimTime now);
  std::unique_ptr<Replica> make_replica(std::size_t replica, ScheduleLog* log);
  void forget(Ticket ticket);
  std::string_view rejection(const Request& request) const;
  [[gnu::noinline]] std::string_view rejection_of_unusual(const Request& request) const;
  void report_completed(Live& live, const SequenceOutcome& outcome);
  void reject(const Request& request, std::string_view reason);
  void report_unfinished();
  RequestRecord record_of(const Request& request) const;
  RequestRecord record_of(const Live& live) const;
  // What goes wrong: faults.cpp
  bool act_other(std::size_t actor);
  bool act_scenario();
  void replica_down(std::size_t replica);
  void replica_up(std::size_t replica);
  void place_again(Ticket ticket);
  void act_deadlines();
  void time_out(Ticket ticket);
  void reschedule_others();

  void reschedule(std::size_t replica) { clock_.set(replica, replicas_[replica]->next_event()); }

  struct Deadline {
    SimTime at;
    Ticket ticket;
    std::uint32_t generation;
  };

  ClusterConfig config_;
  ClusterParts parts_;
  std::vector<Actor> others_;  ///< actors of the clock behind the replicas
  Observer& observer_;
  TicketNames* names_;
  RunControl& control_;
  Client client_;
  std::unique_ptr<Router> router_;
  std::shared_ptr<StepCostModel> cost_, decode_cost_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<ReplicaLoad> loads_;
  ReplicaClock clock_;
  std::unique_ptr<Disaggregation> split_;  ///< null unless prefill and decode are apart
  std::span<const ReplicaLoad> routed_;    ///< the loads of the replicas that requests are sent to
  std::int64_t surely_fits_ = 0;           ///< no request of so few tokens in all is too long
  SimTime front_after_;                    ///< of the replicas that yield tokens
  std::vector<Live> tickets_;
  std::vector<Ticket> unused_;
  SimTime now_;
  SimTime first_arrival_ = kNever;
  StepWatch watch_;
  bool watched_ = false;
  bool sends_changed_ = false;  ///< a request ended that others wait for
  bool exhausted_ = false;

  std::size_t next_event_ = 0;     ///< of the scenario
  std::int64_t down_ = 0;          ///< replicas that are
  std::vector<Request> requests_;  ///< by ticket; only with a scenario
  std::vector<EngineStats> lost_;  ///< what replicas did before they went down; likewise
  std::vector<Ticket> held_;       ///< that no replica is up for
  std::deque<Deadline> deadlines_;
  FaultStats faults_;
};

}  // namespace servesim
