#include "cluster/simulation_run.hpp"

#include <algorithm>
#include <string>

#include "cluster/new_sequence.hpp"
#include "core/error.hpp"

namespace servesim {
namespace {

std::size_t total_replicas(const ClusterConfig& config) {
  const std::int64_t decode = config.disaggregated ? config.disaggregated->replicas : 0;
  return static_cast<std::size_t>(config.replicas + decode);
}

std::vector<Actor> actors_of(const ClusterConfig& config) {
  std::vector<Actor> actors;
  if (config.disaggregated) actors.push_back(Actor::kNetwork);
  if (!config.scenario.empty()) actors.push_back(Actor::kScenario);
  if (config.request_timeout != SimTime::max()) actors.push_back(Actor::kDeadlines);
  return actors;
}

/// KV that is sent moves in whole blocks, and what was evicted or preempted has no second home.
void validate_pool(const SchedulerConfig& config, const std::string& pool) {
  const bool plain = config.region_rule == nullptr && config.layer_groups.windowed == 0 &&
                     config.preemption_mode == PreemptionMode::kRecompute &&
                     config.offload.tiers.empty() && config.pipeline_parallel == 1;
  if (plain) return;
  throw InputError(
      "the " + pool +
      " pool of a disaggregated cluster has contiguous KV, layer groups with windows, "
      "offload tiers, a pipeline, or preempts other than by recompute; accepted: paged "
      "KV of one group, recompute, no tiers, no pipeline");
}

/// KV that has landed may be used by the step that starts then; work that ends at its deadline has
/// met it.
std::vector<EventClass> classes_of(const std::vector<Actor>& actors) {
  std::vector<EventClass> classes;
  for (const Actor actor : actors) {
    classes.push_back(actor == Actor::kDeadlines ? EventClass::kTimeout
                                                 : EventClass::kTransferDone);
  }
  return classes;
}

}  // namespace

Simulation::Simulation(const ClusterConfig& config, const ClusterParts& parts, TraceReader& trace,
                       Observer& observer, ScheduleLog* log, TicketNames* names,
                       RunControl& control)
    : config_(config),
      parts_(parts),
      others_(actors_of(config)),
      observer_(observer),
      names_(names),
      control_(control),
      client_(trace, config.max_concurrency),
      router_(parts.make_router(config.seed)),
      cost_(parts.make_cost_model()),
      clock_(total_replicas(config), classes_of(others_)),
      front_after_(config.host.front_after) {
  validate(config.scheduler);
  const std::size_t count = total_replicas(config);
  loads_.resize(count);
  routed_ = std::span<const ReplicaLoad>(loads_).first(static_cast<std::size_t>(config.replicas));
  if (config.disaggregated) {
    validate(config.disaggregated->scheduler);
    validate_pool(config.scheduler, "prefill");
    validate_pool(config.disaggregated->scheduler, "decode");
    front_after_ = config.disaggregated->host.front_after;
    decode_cost_ = parts.make_decode_cost_model();
  } else if (holds_max_model_len(config.scheduler, config.scheduler.num_gpu_blocks)) {
    surely_fits_ = config.scheduler.max_model_len;
  }
  for (std::size_t i = 0; i < count; ++i) replicas_.push_back(make_replica(i, log));
  if (config.disaggregated) {
    split_ = std::make_unique<Disaggregation>(*config.disaggregated, config.host.front_after,
                                              routed_.size(), parts.make_router(config.seed + 1),
                                              replicas_, loads_, clock_);
  }
  if (!config.scenario.empty()) lost_.resize(count);
  reschedule_others();
}

std::unique_ptr<Replica> Simulation::make_replica(std::size_t replica, ScheduleLog* log) {
  const std::uint64_t seed = config_.seed + replica;
  if (replica < routed_.size()) {
    return std::make_unique<Replica>(parts_.make_policy(config_.scheduler, *this, log, seed), cost_,
                                     *this, config_.host.step, config_.wait_for_arrivals);
  }
  const DisaggregatedConfig& decode = *config_.disaggregated;
  return std::make_unique<Replica>(
      parts_.make_decode_policy(decode.scheduler, *this, nullptr, seed), decode_cost_, *this,
      decode.host.step, false);
}

std::string_view Simulation::rejection(const Request& request) const {
  const bool fits = request.input_tokens > 0 && request.output_tokens > 0 &&
                    request.input_tokens + request.output_tokens <= surely_fits_;
  return fits ? std::string_view() : rejection_of_unusual(request);
}

std::string_view Simulation::rejection_of_unusual(const Request& request) const {
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
  for (std::size_t i = 0; i < lost_.size(); ++i) outcome.engines[i].add(lost_[i]);
  outcome.faults = faults_;
  if (split_) outcome.faults.failed_transfers = split_->failed_transfers();
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
    const SimTime before = now_;
    now_ = clock_.time();
    const std::size_t actor = clock_.actor();
    if (actor < replicas_.size()) {
      replicas_[actor]->act(now_);
      reschedule(actor);
    } else if (!act_other(actor)) {
      now_ = before;
    }
    if (rarely(!others_.empty())) reschedule_others();
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

void Simulation::begin(SimTime first_arrival) {
  first_arrival_ = first_arrival;
  watch_ = observer_.watch(first_arrival);
  watched_ = watch_.steps;
  for (std::size_t i = 0; watched_ && i < replicas_.size(); ++i) watch_replica(i);
  if (watched_ && split_) split_->watch(observer_);
}

void Simulation::watch_replica(std::size_t replica) {
  replicas_[replica]->watch(observer_, static_cast<std::int32_t>(replica), watch_);
}

void Simulation::deliver(const Request& request, std::int64_t session, SimTime now) {
  if (rarely(first_arrival_ == kNever)) begin(request.arrival);
  control_.requests_read.store(control_.requests_read.load(std::memory_order_relaxed) + 1,
                               std::memory_order_relaxed);  // written by nobody else
  control_.simulated_ns.store(now.ns(), std::memory_order_relaxed);
  const bool up = mostly(down_ == 0) || any_up(routed_);
  const std::size_t replica = up ? router_->route(request, routed_) : 0;
  if (rarely(config_.max_queue > 0) && up &&
      replicas_[replica]->policy().waiting() >= config_.max_queue) {
    reject(request, "the queue is full");
    client_.ended(session, request.arrival);
    return;
  }
  const Ticket ticket = make_ticket(request, session);
  if (rarely(config_.request_timeout != SimTime::max())) {
    deadlines_.push_back(
        {request.arrival + config_.request_timeout, ticket, tickets_[ticket].generation});
  }
  if (rarely(!config_.scenario.empty())) {
    if (requests_.size() <= ticket) requests_.resize(ticket + 1);
    requests_[ticket] = request;
  }
  if (up) {
    send_to(replica, ticket, request, session, now);
  } else {
    held_.push_back(ticket);
  }
  if (rarely(!others_.empty())) reschedule_others();
}

void Simulation::send_to(std::size_t replica, Ticket ticket, const Request& request,
                         std::int64_t session, SimTime now) {
  loads_[replica].add(1, request.input_tokens + (is_split() ? 0 : request.output_tokens));
  tickets_[ticket].replica = static_cast<std::int32_t>(replica);
  NewSequence sequence = new_sequence(request, ticket, session, now);
  if (is_split()) split_->begin(sequence, request, replica, now);
  replicas_[replica]->add(sequence, now);
  reschedule(replica);
}

Ticket Simulation::make_ticket(const Request& request, std::int64_t session) {
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
  live.replica = -1;
  live.live = true;
  if (rarely(names_ != nullptr))
    names_->push_back(request.id.empty() ? std::to_string(request.index) : request.id);
  return ticket;
}

void Simulation::on_finished(Ticket ticket, const SequenceOutcome& outcome) {
  Live& live = tickets_[ticket];
  if (is_split()) {
    if (split_->prefill_ended(ticket, outcome)) return;
    live.replica = static_cast<std::int32_t>(split_->decode_replica(ticket));
  }
  loads_[static_cast<std::size_t>(live.replica)].add(-1, -live.input_tokens - live.output_tokens);
  report_completed(live, is_split() ? split_->decode_ended(ticket, outcome) : outcome);
  forget(ticket);
}

void Simulation::forget(Ticket ticket) {
  tickets_[ticket].live = false;
  ++tickets_[ticket].generation;
  if (mostly(names_ == nullptr)) unused_.push_back(ticket);
}

void Simulation::report_completed(Live& live, const SequenceOutcome& outcome) {
  RequestRecord record = record_of(live);
  record.scheduled = outcome.scheduled;
  record.first_token = outcome.first_token + front_after_;
  record.last_token = outcome.last_token + front_after_;
  record.generated_tokens = outcome.outputs;
  record.prefix_hit_tokens = outcome.prefix_hit_tokens;
  record.preemptions = outcome.preemptions;
  observer_.on_request(record);
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

RequestRecord Simulation::record_of(const Live& live) const {
  RequestRecord record;
  record.index = live.index;
  record.id = live.id;
  record.session = live.session_name;
  record.arrival = live.arrival;
  record.scheduled = record.first_token = record.last_token = kNever;
  record.input_tokens = live.input_tokens;
  record.output_tokens = live.output_tokens;
  record.replica = live.replica;
  return record;
}

void Simulation::reject(const Request& request, std::string_view reason) {
  RequestRecord record = record_of(request);
  record.status = RequestStatus::kRejected;
  record.reason = reason;
  observer_.on_request(record);
}

void Simulation::report_unfinished() {
  const bool stopped = control_.stop.load();
  const auto report = [&](RequestRecord record, std::string_view reason) {
    record.status = RequestStatus::kUnfinished;
    record.reason = reason;
    observer_.on_request(record);
  };
  for (const Live& live : tickets_) {
    if (live.live) report(record_of(live), stopped ? "the run was stopped" : "no replica was up");
  }
  for (const Request& request : client_.unsent()) {
    report(record_of(request), stopped ? "the run was stopped before it was sent"
                                       : "a request that it waits for never ended");
  }
}

ClusterOutcome run_cluster(const ClusterConfig& config, const ClusterParts& parts,
                           TraceReader& trace, Observer& observer, ScheduleLog* log,
                           TicketNames* names, RunControl& control) {
  return Simulation(config, parts, trace, observer, log, names, control).run();
}

}  // namespace servesim
