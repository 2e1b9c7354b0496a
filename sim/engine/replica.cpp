#include "engine/replica.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace servesim {

Replica::Replica(std::unique_ptr<BatchPolicy> policy, std::shared_ptr<StepCostModel> cost,
                 SequenceSink& sink, SimTime host_step, bool wait_for_arrivals)
    : policy_(std::move(policy)),
      cost_(std::move(cost)),
      sink_(sink),
      host_step_(host_step),
      wait_for_arrivals_(wait_for_arrivals),
      max_in_flight_(static_cast<std::size_t>(policy_->batches_in_flight())),
      constant_steps_(cost_->decode_step_is_constant()),
      block_size_(policy_->block_size()),
      stages_(cost_->stages(StepCost{}).size()),
      has_pipeline_(stages_.size() > 1) {}

void Replica::add(const NewSequence& sequence, SimTime now) {
  if (stretch_left_ > 0 && policy_->arrival_matters()) {
    advance(now, false);
    stretch_left_ = 0;
    next_event_ = front().end;
  }
  policy_->add(sequence);
  if (in_flight_ == 0 && next_event_ == SimTime::max()) {
    waiting_for_arrival_ = false;
    next_event_ = now;
  }
}

/// Changes the policy's state between two steps. `change` says whether that may change what is
/// scheduled next.
template <typename Change>
void Replica::intervene(SimTime now, Change change) {
  advance(now, false);
  account_kv(now);
  const bool matters = change();
  kv_ = policy_->kv_usage();
  report_level(now);
  if (matters) wake(now);
}

void Replica::release_kv(Ticket ticket, SimTime now) {
  intervene(now, [&] { return policy_->release_kv(ticket); });
}

void Replica::kv_arrived(Ticket ticket, SimTime now) {
  intervene(now, [&] {
    policy_->kv_arrived(ticket);
    return true;
  });
}

void Replica::kv_failed(Ticket ticket, SimTime now) {
  intervene(now, [&] {
    policy_->kv_failed(ticket);
    return true;
  });
}

SequenceOutcome Replica::abort(Ticket ticket, SimTime now) {
  SequenceOutcome outcome;
  intervene(now, [&] {
    outcome = policy_->abort(ticket);
    return true;
  });
  return outcome;
}

/// What changed `now` may change the decision: the next schedule() is to see it.
void Replica::wake(SimTime now) {
  stretch_left_ = 0;
  next_event_ = in_flight_ > 0 ? front().end : now;
}

void Replica::act(SimTime now) {
  advance(now, true);
  if (stretch_left_ > 0 || (in_flight_ > 0 && front().end > now)) {
    next_event_ = next_action();
    return;
  }
  if (in_flight_ > 0) {
    now = front().end;
    commit(now);
  }
  run(now);
}

/// Schedules until every slot in flight is taken or nothing is left to schedule.
void Replica::run(SimTime now) {
  account_kv(now);
  stretch_left_ = 0;
  bool live = policy_->live();
  while (live) {
    const bool worth_another = schedule(now);
    live = plan_->tokens > 0 || policy_->live();
    if (in_flight_ == max_in_flight_ || !worth_another) break;
  }
  if (!live) {
    kv_ = policy_->kv_usage();
    report_level(now);
  }
  next_event_ = in_flight_ == 0 ? SimTime::max() : next_action();
}

/// When there is something to do that cannot wait until someone asks for it.
SimTime Replica::next_action() {
  const bool anyone_waits = stretch_left_ == 0 || front().results == StepResults::kEnds;
  return anyone_waits ? front().end : stretch_bound();
}

/// Plans and launches one batch. True when another one should follow at once, if there is room in
/// flight.
bool Replica::schedule(SimTime now) {
  const StepPlan& plan = policy_->plan(now);
  plan_ = &plan;
  kv_ = plan.kv;
  note_peak();
  const bool unfinished = plan.tokens > 0 || policy_->has_unfinished();
  watch_progress(plan, unfinished);
  if (rarely(plan.tokens == 0) && max_in_flight_ == 1) {
    report_level(now);
    commit(now);  // nothing ran
    waiting_for_arrival_ = unfinished && wait_for_arrivals_ && arrivals_expected_;
    return unfinished && !waiting_for_arrival_;
  }
  if (is_watched()) {
    start_watched(plan, now);
  } else {
    start(plan, now);
  }
  if (rarely(plan.pushes_kv)) sink_.on_step_launched(last_begin_, device_free_);
  begin_stretch(plan);
  if (has_pipeline()) return plan.tokens > 0 && front().end > now;
  return plan.tokens > 0 || unfinished;
}

void Replica::commit(SimTime now) {
  if (in_flight_ > 0) {
    take_results(now);
  } else {
    last_done_ = now;
  }
  policy_->commit(now);
#ifndef NDEBUG
  policy_->check_integrity();
#endif
}

void Replica::start(const StepPlan& plan, SimTime now) {
  if (rarely(plan.tokens == 0)) {  // an empty batch takes no time, but waits its turn
    device_free_ = std::max(device_free_, now);
    last_begin_ = device_free_;
    push(device_free_, 0);
    return;
  }
  cool(now + host_step_);
  const bool plain_decodes = !has_pipeline() && plan.transfer.ns() == 0 && plan.chunks.empty() &&
                             plan.decode_tokens == plan.decode_seqs &&
                             plan.sampled == plan.decode_seqs;
  if (plain_decodes) {
    launch_decodes(now, plan.decode_seqs, plan.decode_context, plan.gap_count);
    return;
  }
  ++stats_.steps;
  stats_.scheduled_seqs += plan.decode_seqs + std::ssize(plan.chunks);
  stats_.scheduled_tokens += plan.tokens;
  const StepCost cost = cost_->price(plan.shape(), heat_);
  sums_.add(cost, 1);
  if (has_pipeline()) {
    push(launch_pipelined(cost, now), 0);
    return;
  }
  const SimTime total = with_transfer(plan, cost.total);
  heat_ = cost_->next_heat(heat_, cost.compute_bound_s, total);
  push(launch(now, total), plan.gap_count);
}

/// The length of a step whose kernels take `compute`: KV is moved before them, or beside them.
SimTime Replica::with_transfer(const StepPlan& plan, SimTime compute) {
  const SimTime total =
      plan.transfer_overlaps ? std::max(compute, plan.transfer) : compute + plan.transfer;
  exposed_transfer_ += total - compute;
  return total;
}

/// Requests of equal priority and arrival can preempt each other for ever where nothing is reserved
/// for them.
void Replica::watch_progress(const StepPlan& plan, bool unfinished) {
  constexpr std::int64_t kMostStepsWithoutOutput = 10'000'000;
  steps_without_output_ = plan.sampled > 0 || !unfinished ? 0 : steps_without_output_ + 1;
  if (steps_without_output_ > kMostStepsWithoutOutput) {
    throw InputError(
        "no request gets any output for 10,000,000 steps: they preempt each other for ever; "
        "reserve the "
        "full prompt at admission, or give the requests distinct arrivals or priorities");
  }
}

/// The end of a batch of `duration` that is scheduled `now`: it starts when the host is done with
/// it and the device with the one before.
SimTime Replica::launch(SimTime now, SimTime duration) {
  const SimTime idle_since = std::max(device_free_, now);
  const SimTime begin = std::max(device_free_, now + host_step_);
  exposed_host_ += begin - idle_since;
  sums_.busy += duration;
  last_begin_ = begin;
  device_free_ = begin + duration;
  return device_free_;
}

/// The same for a batch that goes from stage to stage. The heat is that of the first stage.
SimTime Replica::launch_pipelined(const StepCost& cost, SimTime now) {
  const std::span<const SimTime> times = cost_->stages(cost);
  const auto count = static_cast<std::int64_t>(times.size());
  heat_ = cost_->next_heat(heat_, cost.compute_bound_s / static_cast<double>(count), times[0]);
  last_begin_ = std::max(next_begin(), now + host_step_);
  exposed_host_ += last_begin_ - std::max(next_begin(), now);
  SimTime at = last_begin_;
  for (std::size_t i = 0; i < times.size(); ++i) {
    stages_[i].begin = std::max(at, stages_[i].end);
    at = stages_[i].end = stages_[i].begin + times[i];
  }
  const SimTime busy(cost.total.ns() / count);
  sums_.busy += busy;
  sums_.bubbles += at - std::max(device_free_, last_begin_) - busy;
  device_free_ = at;
  return at;
}

void Replica::cool(SimTime until) {
  if (until > next_begin()) heat_ = cost_->next_heat(heat_, 0, until - next_begin());
}

/// `sums` and what is counted apart: attention of decode_step(), host and transfer time that no
/// step hides.
Replica::StepSums Replica::completed(StepSums sums) const {
  sums.seconds[static_cast<std::size_t>(Component::kAttentionDecode)] += attention_seconds_;
  sums.seconds[static_cast<std::size_t>(Component::kHost)] += exposed_host_.seconds();
  sums.seconds[static_cast<std::size_t>(Component::kKvTransfer)] += exposed_transfer_.seconds();
  const AttentionWork attention = cost_->decode_attention_work();
  sums.flops += attention.flops * decode_context_sum_;
  sums.hbm_bytes += attention.hbm_bytes * decode_context_sum_;
  return sums;
}

EngineStats Replica::stats(SimTime now) {
  advance(now, false);
  account_kv(now);
  for (PendingRest& pending : pending_rests_) flush_rest(pending);
  EngineStats result = stats_;
  const StepSums sums = completed(sums_);
  result.busy = sums.busy;
  result.bubbles = sums.bubbles;
  result.seconds = sums.seconds;
  result.flops = sums.flops;
  result.hbm_bytes = sums.hbm_bytes;
  result.kv_peak = peak_;
  result.kv.used = (allocated_ns_ - internal_ns_ - reserved_ns_) * 1e-9;
  result.kv.internal = internal_ns_ * 1e-9;
  result.kv.reserved = reserved_ns_ * 1e-9;
  result.kv.external = external_ns_ * 1e-9;
  result.kv.elapsed_s = now.seconds();
  result.last_step_end = device_free_;
  static_cast<SchedulerCounters&>(result) = policy_->counters();
  return result;
}

EngineStats Replica::stats_at_death(SimTime now) {
  EngineStats result = stats(now);
  double lost_s = 0;
  for (std::size_t i = 0; i < in_flight_; ++i) {
    const SimTime begin = std::max(flights_[i].begin, now);
    if (flights_[i].end > begin) lost_s += (flights_[i].end - begin).seconds();
  }
  const double busy_s = result.busy.seconds();
  if (busy_s == 0) return result;
  const double kept = std::max(0.0, 1 - lost_s / static_cast<double>(stages_.size()) / busy_s);
  result.busy = SimTime::from_seconds(kept * busy_s);
  for (double& seconds : result.seconds) seconds *= kept;
  result.flops *= kept;
  result.hbm_bytes *= kept;
  return result;
}

}  // namespace servesim
