// Replicas that go down and come back, links that degrade, clients that give up.
#include <algorithm>
#include <utility>

#include "cluster/simulation_run.hpp"

namespace servesim {

void Simulation::reschedule_others() {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    SimTime at = SimTime::max();
    switch (others_[i]) {
      case Actor::kNetwork:
        at = split_->next_event();
        break;
      case Actor::kScenario:
        if (next_event_ < config_.scenario.size()) at = config_.scenario[next_event_].at;
        break;
      case Actor::kDeadlines:
        while (!deadlines_.empty() &&
               tickets_[deadlines_.front().ticket].generation != deadlines_.front().generation) {
          deadlines_.pop_front();
        }
        if (!deadlines_.empty()) at = deadlines_.front().at;
        break;
    }
    clock_.set(replicas_.size() + i, at);
  }
}

/// False when nothing came of it, which then takes no time.
bool Simulation::act_other(std::size_t actor) {
  switch (others_[actor - replicas_.size()]) {
    case Actor::kNetwork:
      split_->act(now_);
      break;
    case Actor::kScenario:
      return act_scenario();
    case Actor::kDeadlines:
      act_deadlines();
      break;
  }
  return true;
}

bool Simulation::act_scenario() {
  const bool over = client_.exhausted() && std::none_of(tickets_.begin(), tickets_.end(),
                                                        [](const Live& live) { return live.live; });
  if (over) {  // nobody is left whom it could matter to
    next_event_ = config_.scenario.size();
    return false;
  }
  const ScenarioEvent& event = config_.scenario[next_event_++];
  switch (event.kind) {
    case ScenarioEvent::Kind::kReplicaDown:
      if (loads_[event.replica].up) replica_down(event.replica);
      break;
    case ScenarioEvent::Kind::kReplicaUp:
      if (!loads_[event.replica].up) replica_up(event.replica);
      break;
    case ScenarioEvent::Kind::kLink:
      if (split_) split_->set_bandwidth(event.link, event.bandwidth, now_);
      break;
  }
  return true;
}

/// What the replica held is lost, its cache too. What was in flight there begins anew elsewhere.
void Simulation::replica_down(std::size_t replica) {
  EngineStats done = replicas_[replica]->stats_at_death(now_);
  done.kv.elapsed_s = 0;  // its successor counts the time from the start
  lost_[replica].add(done);
  replicas_[replica] = make_replica(replica, nullptr);
  if (watched_) {
    watch_replica(replica);
    replicas_[replica]->report_level(now_);
  }
  if (exhausted_) replicas_[replica]->expect_no_arrivals();
  clock_.set(replica, SimTime::max());
  loads_[replica] = {0, 0, false};
  ++down_;
  ++faults_.downs;
  std::vector<Ticket> anew;
  if (replica < routed_.size()) router_->forget(replica);
  if (split_) {
    anew = split_->replica_down(replica, now_);
  } else {
    for (Ticket ticket = 0; ticket < tickets_.size(); ++ticket) {
      const Live& live = tickets_[ticket];
      if (live.live && live.replica == static_cast<std::int32_t>(replica)) anew.push_back(ticket);
    }
  }
  for (const Ticket ticket : anew) {
    ++faults_.rerouted;
    place_again(ticket);
  }
}

void Simulation::replica_up(std::size_t replica) {
  loads_[replica].up = true;
  --down_;
  if (split_ && replica >= routed_.size()) split_->replica_up(now_);
  const std::vector<Ticket> held = std::exchange(held_, {});
  for (const Ticket ticket : held) place_again(ticket);
}

void Simulation::place_again(Ticket ticket) {
  Live& live = tickets_[ticket];
  live.replica = -1;
  if (!any_up(routed_)) {
    held_.push_back(ticket);
    return;
  }
  const Request request = requests_[ticket];
  send_to(router_->route(request, routed_), ticket, request, live.session, now_);
}

void Simulation::act_deadlines() {
  while (!deadlines_.empty() && deadlines_.front().at <= now_) {
    const Deadline due = deadlines_.front();
    deadlines_.pop_front();
    if (tickets_[due.ticket].generation == due.generation) time_out(due.ticket);
  }
}

/// The client gives up: the engine drops what it has of the request.
void Simulation::time_out(Ticket ticket) {
  const Live& live = tickets_[ticket];
  SequenceOutcome outcome;
  if (live.replica < 0) {
    std::erase(held_, ticket);
  } else if (split_) {
    outcome = split_->abandon(ticket, now_);
  } else {
    const auto replica = static_cast<std::size_t>(live.replica);
    outcome = replicas_[replica]->abort(ticket, now_);
    reschedule(replica);
    loads_[replica].add(-1, -live.input_tokens - live.output_tokens);
  }
  RequestRecord record = record_of(live);
  record.scheduled = outcome.scheduled;
  if (outcome.outputs > 0) record.first_token = outcome.first_token + front_after_;
  record.generated_tokens = outcome.outputs;
  record.prefix_hit_tokens = outcome.prefix_hit_tokens;
  record.preemptions = outcome.preemptions;
  record.status = RequestStatus::kUnfinished;
  record.reason = "timed out";
  observer_.on_request(record);
  ++faults_.timed_out;
  sends_changed_ = sends_changed_ || client_.ends_matter();
  client_.ended(live.session, now_);
  forget(ticket);
}

}  // namespace servesim
