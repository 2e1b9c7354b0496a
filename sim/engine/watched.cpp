// What a replica does besides when its steps are watched.
#include <algorithm>

#include "engine/replica.hpp"

namespace servesim {

void Replica::watch(Observer& observer, std::int32_t replica, const StepWatch& watch) {
  watch_ = {&observer, replica, watch};
}

/// take_until(), with a report for each piece.
Replica::Taken Replica::take_watched(SimTime until, bool inclusive) {
  Taken all;
  while (stretch_left_ > 0) {
    const SimTime at = front().end;
    if (inclusive ? at > until : at >= until) break;
    StepReport report = open_report(at, true);
    const Stretch& stretch = plan_->stretch;
    report.decode_seqs = report.decode_tokens = stretch.seqs;
    report.context_growth = stretch.context_growth;
    report.decode_context = context_;
    report.kv = kv_;
    grow(report.kv, stretch.block_growth[next_phase()], stretch.slot_growth);
    account_kv(at);
    const StepSums before = sums_seen(stretch.seqs);
    const KvLevels kv_before{allocated_ns_, internal_ns_, reserved_ns_};
    const Taken taken = take_piece(at, until, inclusive);
    report.kv_integral = {allocated_ns_ - kv_before.allocated, internal_ns_ - kv_before.internal,
                          reserved_ns_ - kv_before.reserved};
    report.steps = taken.steps;
    report.last_scheduled = last_done_;
    report.kv_last = kv_;
    close_report(report, before);
    all.steps += taken.steps;
    all.blocks += taken.blocks;
  }
  return all;
}

/// The steps to report together: one within the window, else as many as there are up to it.
Replica::Taken Replica::take_piece(SimTime at, SimTime until, bool inclusive) {
  const StepWatch& wanted = watch_.wanted;
  if (at >= wanted.singly_until) return take_until(until, inclusive);
  if (at >= wanted.singly_from) return {1, take_step(at)};
  if (wanted.singly_from <= until) return take_until(wanted.singly_from, false);
  return take_until(until, inclusive);
}

void Replica::start_watched(const StepPlan& plan, SimTime now) {
  StepReport report = open_report(now, plan.tokens > 0);
  report.steps = plan.tokens > 0 ? 1 : 0;
  report.decode_seqs = plan.decode_seqs;
  report.decode_tokens = plan.decode_tokens;
  report.decode_context = plan.decode_context;
  report.chunks = plan.chunks;
  report.kv = report.kv_last = plan.kv;
  const StepSums before = sums_seen(plan.decode_seqs);
  start(plan, now);
  if (plan.tokens > 0) report.begin = last_begin_;
  if (has_pipeline() && plan.tokens > 0) report.stages = stages_;
  close_report(report, before);
}

void Replica::report_level(SimTime now) {
  if (!is_watched()) return;
  StepReport report = open_report(now, false);
  report.kv = report.kv_last = kv_;
  report.end = report.begin;
  watch_.observer->on_steps(report);
}

StepReport Replica::open_report(SimTime scheduled, bool runs) const {
  StepReport report;
  report.replica = watch_.replica;
  report.scheduled = report.last_scheduled = scheduled;
  report.begin = std::max(device_free_, runs ? scheduled + host_step_ : scheduled);
  report.waiting = policy_->waiting();
  return report;
}

/// Enters what has come in since `before`, and reports.
void Replica::close_report(StepReport& report, const StepSums& before) {
  const StepSums now = sums_seen(report.decode_seqs);
  report.end = device_free_;
  report.busy = now.busy - before.busy;
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    report.seconds[i] = now.seconds[i] - before.seconds[i];
  }
  report.flops = now.flops - before.flops;
  report.hbm_bytes = now.hbm_bytes - before.hbm_bytes;
  watch_.observer->on_steps(report);
}

/// The sums, as far as steps of `decodes` sequences can change them: what is pending for other
/// batch sizes is left out.
Replica::StepSums Replica::sums_seen(std::int64_t decodes) const {
  StepSums sums = sums_;
  const PendingRest& pending =
      pending_rests_[static_cast<std::size_t>(decodes) % pending_rests_.size()];
  if (pending.steps > 0) sums.add(*pending.rest, static_cast<double>(pending.steps));
  return completed(sums);
}

}  // namespace servesim
