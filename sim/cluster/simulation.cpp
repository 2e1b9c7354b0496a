#include "cluster/simulation.hpp"

#include <algorithm>
#include <string>

#include "cluster/client.hpp"
#include "cluster/disaggregation.hpp"
#include "cluster/replica_clock.hpp"
#include "engine/replica.hpp"

namespace servesim {
namespace {

/// A request that was sent and has not ended.
struct Live {
  std::uint64_t index = 0;
  std::string id;
  std::string session_name;
  std::int64_t session = -1;
  SimTime arrival;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int32_t replica = -1;
  bool live = false;
};

constexpr SimTime kNever = SimTime(-1);

std::size_t total_replicas(const ClusterConfig& config) {
  const std::int64_t decode = config.disaggregated ? config.disaggregated->replicas : 0;
  return static_cast<std::size_t>(config.replicas + decode);
}

class Simulation : public SequenceSink {
 public:
  Simulation(const ClusterConfig& config, const ClusterParts& parts, TraceReader& trace,
             Observer& observer, ScheduleLog* log, TicketNames* names, RunControl& control);

  ClusterOutcome run();

  void on_finished(Ticket ticket, const SequenceOutcome& outcome) override;
  void on_token_gaps(SimTime gap, std::int64_t count) override {
    observer_.on_token_gaps(gap, count);
  }
  void on_kv_wanted(Ticket ticket, std::int64_t cached, std::int64_t blocks) override {
    split_->kv_wanted(ticket, cached, blocks, now_);
  }
  void on_kv_planned(Ticket ticket, std::int64_t upto) override {
    split_->kv_planned(ticket, upto);
  }
  void on_step_launched(SimTime begin, SimTime end) override { split_->step_launched(begin, end); }

 private:
  SimTime next_arrival();
  void act_until(SimTime arrival);
  void settle_rejections();
  void send_next();
  void deliver(const Request& request, std::int64_t session, SimTime now);
  Ticket make_ticket(const Request& request, std::int64_t session, std::int32_t replica);
  std::string_view rejection(const Request& request) const;
  void report_completed(Live& live, const SequenceOutcome& outcome);
  void reject(const Request& request, std::string_view reason);
  void add_decode_replicas(const DisaggregatedConfig& decode, const ClusterParts& parts);
  void report_unfinished();
  RequestRecord record_of(const Request& request) const;
  void reschedule(std::size_t replica) { clock_.set(replica, replicas_[replica]->next_event()); }

  ClusterConfig config_;
  Observer& observer_;
  TicketNames* names_;
  RunControl& control_;
  Client client_;
  std::unique_ptr<Router> router_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<ReplicaLoad> loads_;
  ReplicaClock clock_;
  std::unique_ptr<Disaggregation> split_;  ///< null unless prefill and decode are apart
  std::span<const ReplicaLoad> routed_;    ///< the loads of the replicas that requests are sent to
  SimTime front_after_;                    ///< of the replicas that yield tokens
  std::vector<Live> tickets_;
  std::vector<Ticket> unused_;
  SimTime now_;
  SimTime first_arrival_ = kNever;
  bool sends_changed_ = false;  ///< a request ended that others wait for
  bool exhausted_ = false;
};

Simulation::Simulation(const ClusterConfig& config, const ClusterParts& parts, TraceReader& trace,
                       Observer& observer, ScheduleLog* log, TicketNames* names,
                       RunControl& control)
    : config_(config),
      observer_(observer),
      names_(names),
      control_(control),
      client_(trace, config.max_concurrency),
      router_(parts.make_router(config.seed)),
      clock_(total_replicas(config), config.disaggregated ? 1 : 0),
      front_after_(config.host.front_after) {
  validate(config.scheduler);
  const auto count = static_cast<std::size_t>(config.replicas);
  loads_.resize(total_replicas(config));
  routed_ = std::span<const ReplicaLoad>(loads_).first(count);
  const std::shared_ptr<StepCostModel> cost = parts.make_cost_model();
  for (std::size_t i = 0; i < count; ++i) {
    replicas_.push_back(
        std::make_unique<Replica>(parts.make_policy(config.scheduler, *this, log, config.seed + i),
                                  cost, *this, config.host.step, config.wait_for_arrivals));
  }
  if (config.disaggregated) add_decode_replicas(*config.disaggregated, parts);
}

void Simulation::add_decode_replicas(const DisaggregatedConfig& decode, const ClusterParts& parts) {
  validate(decode.scheduler);
  front_after_ = decode.host.front_after;
  const std::shared_ptr<StepCostModel> cost = parts.make_decode_cost_model();
  for (std::int64_t i = 0; i < decode.replicas; ++i) {
    const std::uint64_t seed = config_.seed + replicas_.size();
    replicas_.push_back(
        std::make_unique<Replica>(parts.make_decode_policy(decode.scheduler, *this, nullptr, seed),
                                  cost, *this, decode.host.step, false));
  }
  split_ = std::make_unique<Disaggregation>(decode, config_.host.front_after, routed_.size(),
                                            parts.make_router(config_.seed + 1), replicas_, loads_,
                                            clock_);
}

std::string_view Simulation::rejection(const Request& request) const {
  if (!config_.disaggregated) {
    return rejection_reason(config_.scheduler, request.input_tokens, request.output_tokens);
  }
  const std::int64_t outputs = std::min<std::int64_t>(request.output_tokens, 1);
  const auto reason = rejection_reason(config_.scheduler, request.input_tokens, outputs);
  return !reason.empty() ? reason
                         : rejection_reason(config_.disaggregated->scheduler, request.input_tokens,
                                            request.output_tokens);
}

ClusterOutcome Simulation::run() {
  while (!control_.stop.load(std::memory_order_relaxed)) {
    const SimTime arrival = next_arrival();
    act_until(arrival);
    if (sends_changed_) continue;
    if (arrival == SimTime::max()) break;
    now_ = arrival;
    send_next();
  }
  report_unfinished();
  ClusterOutcome outcome;
  for (const auto& replica : replicas_) {
    outcome.engines.push_back(replica->stats(std::max(now_, first_arrival_)));
    outcome.engines.back().kv.elapsed_s -= std::max(first_arrival_, SimTime(0)).seconds();
  }
  if (split_) outcome.transfers = split_->stats(now_);
  return outcome;
}

SimTime Simulation::next_arrival() {
  sends_changed_ = false;
  settle_rejections();
  const SimTime send = client_.next_send();
  return send == SimTime::max() ? send : send + config_.host.front_before;
}

/// Lets the engines act before `arrival` (which comes first at its instant, see EventClass), or
/// until the end of a request has changed what is sent next.
void Simulation::act_until(SimTime arrival) {
  while (clock_.time() < arrival && !sends_changed_) {
    now_ = clock_.time();
    const std::size_t actor = clock_.actor();
    if (actor < replicas_.size()) {
      replicas_[actor]->act(now_);
      reschedule(actor);
    } else {
      split_->act(now_);
    }
    if (split_) clock_.set(replicas_.size(), split_->next_event());
    if (control_.stop.load(std::memory_order_relaxed)) return;
  }
}

/// Requests that can never be served need no place in time: nobody waits for an arrival that is
/// none.
void Simulation::settle_rejections() {
  while (const Request* next = client_.peek_open()) {
    const std::string_view reason = rejection(*next);
    if (reason.empty()) break;
    reject(*next, reason);
    client_.drop_open();
  }
  if (!exhausted_ && client_.exhausted()) {
    exhausted_ = true;
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      if (replicas_[i]->expect_no_arrivals()) reschedule(i);
    }
  }
}

void Simulation::send_next() {
  std::int64_t session = -1;
  const Request& request = client_.send(session);
  const std::string_view reason =
      request.closed_loop ? rejection(request) : std::string_view();  // settled before
  if (reason.empty()) {
    deliver(request, session, now_);
  } else {
    reject(request, reason);
    client_.ended(session, request.arrival);
  }
}

void Simulation::deliver(const Request& request, std::int64_t session, SimTime now) {
  if (first_arrival_ == kNever) first_arrival_ = request.arrival;
  const std::size_t replica = router_->route(request, routed_);
  ++loads_[replica].requests;
  loads_[replica].tokens += request.input_tokens + (split_ ? 0 : request.output_tokens);
  NewSequence sequence;
  sequence.ticket = make_ticket(request, session, static_cast<std::int32_t>(replica));
  sequence.index = request.index;
  sequence.id = request.id;
  sequence.prompt = request.input_tokens;
  sequence.max_tokens = request.output_tokens;
  sequence.priority = request.priority;
  sequence.arrival = now;
  sequence.hash_block = request.hash_block;
  sequence.hash_ids = request.hash_ids;
  sequence.session = session;
  if (split_) split_->begin(sequence, request, replica, now);
  replicas_[replica]->add(sequence, now);
  reschedule(replica);
  if (split_) clock_.set(replicas_.size(), split_->next_event());
  control_.requests_read.fetch_add(1, std::memory_order_relaxed);
  control_.simulated_ns.store(now.ns(), std::memory_order_relaxed);
}

Ticket Simulation::make_ticket(const Request& request, std::int64_t session, std::int32_t replica) {
  Ticket ticket;
  if (unused_.empty()) {
    ticket = static_cast<Ticket>(tickets_.size());
    tickets_.emplace_back();
  } else {
    ticket = unused_.back();
    unused_.pop_back();
  }
  Live& live = tickets_[ticket];
  live.index = request.index;
  if (!(request.id.empty() && live.id.empty())) live.id = request.id;
  if (!(request.session.empty() && live.session_name.empty())) live.session_name = request.session;
  live.session = session;
  live.arrival = request.arrival;
  live.input_tokens = request.input_tokens;
  live.output_tokens = request.output_tokens;
  live.replica = replica;
  live.live = true;
  if (names_ != nullptr)
    names_->push_back(request.id.empty() ? std::to_string(request.index) : request.id);
  return ticket;
}

void Simulation::on_finished(Ticket ticket, const SequenceOutcome& outcome) {
  Live& live = tickets_[ticket];
  if (split_) {
    if (split_->prefill_ended(ticket, outcome)) return;
    live.replica = static_cast<std::int32_t>(split_->decode_replica(ticket));
  }
  ReplicaLoad& load = loads_[static_cast<std::size_t>(live.replica)];
  --load.requests;
  load.tokens -= live.input_tokens + live.output_tokens;
  if (split_) {
    SequenceOutcome both = outcome;
    split_->decode_ended(ticket, both);
    report_completed(live, both);
  } else {
    report_completed(live, outcome);
  }
  if (names_ == nullptr) unused_.push_back(ticket);
}

void Simulation::report_completed(Live& live, const SequenceOutcome& outcome) {
  RequestRecord record;
  record.index = live.index;
  record.id = live.id;
  record.session = live.session_name;
  record.arrival = live.arrival;
  record.scheduled = outcome.scheduled;
  record.first_token = outcome.first_token + front_after_;
  record.last_token = outcome.last_token + front_after_;
  record.input_tokens = live.input_tokens;
  record.output_tokens = live.output_tokens;
  record.generated_tokens = outcome.outputs;
  record.replica = live.replica;
  record.prefix_hit_tokens = outcome.prefix_hit_tokens;
  record.preemptions = outcome.preemptions;
  observer_.on_request(record);
  live.live = false;
  const std::int64_t session = live.session;
  sends_changed_ = sends_changed_ || client_.ends_matter();
  client_.ended(session, record.last_token);
}

RequestRecord Simulation::record_of(const Request& request) const {
  RequestRecord record;
  record.index = request.index;
  record.id = request.id;
  record.session = request.session;
  record.arrival = request.arrival;
  record.scheduled = record.first_token = record.last_token = kNever;
  record.input_tokens = request.input_tokens;
  record.output_tokens = request.output_tokens;
  return record;
}

void Simulation::reject(const Request& request, std::string_view reason) {
  RequestRecord record = record_of(request);
  record.status = RequestStatus::kRejected;
  record.reason = reason;
  observer_.on_request(record);
}

void Simulation::report_unfinished() {
  for (const Live& live : tickets_) {
    if (!live.live) continue;
    RequestRecord record;
    record.index = live.index;
    record.id = live.id;
    record.session = live.session_name;
    record.arrival = live.arrival;
    record.scheduled = record.first_token = record.last_token = kNever;
    record.input_tokens = live.input_tokens;
    record.output_tokens = live.output_tokens;
    record.replica = live.replica;
    record.status = RequestStatus::kUnfinished;
    record.reason = "the run was stopped";
    observer_.on_request(record);
  }
  for (const Request& request : client_.unsent()) {
    RequestRecord record = record_of(request);
    record.status = RequestStatus::kUnfinished;
    record.reason = "the run was stopped before it was sent";
    observer_.on_request(record);
  }
}

}  // namespace

ClusterOutcome run_cluster(const ClusterConfig& config, const ClusterParts& parts,
                           TraceReader& trace, Observer& observer, ScheduleLog* log,
                           TicketNames* names, RunControl& control) {
  return Simulation(config, parts, trace, observer, log, names, control).run();
}

}  // namespace servesim
