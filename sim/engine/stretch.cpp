// Stretches of equal decode steps: the part of Replica that runs once per step, or once for many.
#include <algorithm>

#include "engine/replica.hpp"

namespace servesim {
namespace {

/// Growth of the blocks over the steps of a stretch: sums that would otherwise take a loop over the
/// steps.
struct BlockGrowth {
  const std::int32_t* table;
  std::int64_t period;
  std::int64_t phase;  ///< of the step before the first
  std::int64_t cycle;  ///< blocks begun in `period` steps

  struct Sums {
    std::int64_t after_last = 0;  ///< G(steps)
    std::int64_t sum = 0;         ///< G(1) + ... + G(steps - 1), what lies between the steps
  };

  /// G(j) is the number of blocks begun in the first j steps.
  Sums over(std::int64_t steps) const {
    const std::int64_t cycles = steps / period;
    const std::int64_t left = steps - cycles * period;
    const Sums tail = within_cycle(left);
    if (cycles == 0) return {tail.after_last, tail.sum - tail.after_last};
    const std::int64_t last = cycles * cycle + tail.after_last;
    const std::int64_t all = cycle * period * (cycles * (cycles - 1) / 2) +
                             cycles * within_cycle(period).sum + left * cycles * cycle + tail.sum;
    return {last, all - last};
  }

 private:
  /// G(steps) and G(1) + ... + G(steps) for steps <= period.
  Sums within_cycle(std::int64_t steps) const {
    const std::int32_t* begun = table + phase + 1;
    std::int64_t blocks = 0;
    std::int64_t weighted = 0;
    for (std::int64_t r = 0; r < steps; ++r) {
      blocks += begun[r];
      weighted += begun[r] * (steps - r);
    }
    return {blocks, weighted};
  }
};

}  // namespace

/// Takes the steps of the stretch that are scheduled before `until` (at it, too, when `inclusive`).
void Replica::advance(SimTime until, bool inclusive) {
  if (stretch_left_ == 0) return;
  const Taken taken =
      watch_.observer == nullptr ? take_until(until, inclusive) : take_watched(until, inclusive);
  if (taken.steps > 0) {
    policy_->extend(taken.steps, taken.committed, taken.blocks, last_done_);
  }
}

Replica::Taken Replica::take_until(SimTime until, bool inclusive) {
  Taken taken;
  while (stretch_left_ > 0) {
    const SimTime at = front().end;
    if (inclusive ? at > until : at >= until) break;
    if (pending_ != PendingResults::kNone) {
      taken.blocks += settle(at);
      ++taken.steps;
      ++taken.committed;
      continue;
    }
    const std::int64_t count = constant_steps_ ? steps_at_once(until, inclusive) : 0;
    taken.steps += std::max<std::int64_t>(count, 1);
    taken.blocks += count > 1 ? take_steps(count) : take_step(at);
  }
  return taken;
}

/// How many steps of equal period lie before `until`; 0 when they have to be taken singly.
std::int64_t Replica::steps_at_once(SimTime until, bool inclusive) const {
  SimTime period = constant_step_.total;
  if (flights_[0].gap_count != gap_count_) return 0;
  if (max_in_flight_ == 1) {
    period += host_step_;
  } else if (flights_[1].gap_count != gap_count_ || flights_[1].end - flights_[0].end != period ||
             period < host_step_) {
    return 0;
  }
  if (period.ns() == 0) return 0;
  const std::int64_t room = (until - front().end).ns() - (inclusive ? 0 : 1);
  return std::min(stretch_left_, room / period.ns() + 1);
}

/// Takes in the oldest batch at `at` and schedules the next step of the stretch. Returns the blocks
/// it begins.
std::int64_t Replica::take_step(SimTime at) {
  account_kv(at);
  take_results(at);
  return launch_next(at);
}

/// The same where the policy is to hear of the results, which may free KV.
std::int64_t Replica::settle(SimTime at) {
  account_kv(at);
  commit(at);
  pending_ = PendingResults::kNone;
  kv_ = policy_->kv_usage();
  shared_ = policy_->shared_context();
  return launch_next(at);
}

void Replica::take_results(SimTime at) {
  if (front().gap_count > 0) sink_.on_token_gaps(at - last_done_, front().gap_count);
  last_done_ = at;
  pop();
}

std::int64_t Replica::launch_next(SimTime at) {
  --stretch_left_;
  context_ += context_growth_;
  growth_phase_ = growth_phase_ + 1 == growth_period_ ? 0 : growth_phase_ + 1;
  const std::int64_t blocks = block_growth_[growth_phase_];
  grow_kv(blocks, slot_growth_);
  cool(at + host_step_);
  const DecodeStep step =
      constant_steps_ ? constant_step_ : cost_->decode_step(decodes_, context_, shared_, heat_);
  ++stats_.steps;
  stats_.scheduled_seqs += decodes_;
  stats_.scheduled_tokens += decodes_;
  attention_seconds_ += step.attention_s;
  decode_context_sum_ += static_cast<double>(context_);
  count_rest(step.rest, decodes_, 1);
  const SimTime end = launch(at, step.total);
  push({end, gap_count_, last_begin_});
  return blocks;
}

/// The same for `count` steps of equal length.
std::int64_t Replica::take_steps(std::int64_t count) {
  const SimTime period =
      max_in_flight_ == 1 ? constant_step_.total + host_step_ : constant_step_.total;
  const SimTime first = front().end;
  account_kv(first);
  if (gap_count_ > 0 && first - last_done_ == period) {
    sink_.on_token_gaps(period, gap_count_ * count);
  } else if (gap_count_ > 0) {
    sink_.on_token_gaps(first - last_done_, gap_count_);
    sink_.on_token_gaps(period, gap_count_ * (count - 1));
  }
  last_done_ = last_action_ = first + period * (count - 1);

  const BlockGrowth::Sums blocks =
      BlockGrowth{block_growth_, growth_period_, growth_phase_, slot_growth_}.over(count);
  KvUsage between{kv_.allocated * (count - 1), kv_.internal * (count - 1),
                  kv_.reserved * (count - 1), kv_.external * (count - 1)};
  grow(between, blocks.sum, slot_growth_ * (count * (count - 1) / 2));
  add_kv(period.ns(), between);
  grow_kv(blocks.after_last, slot_growth_ * count);

  stats_.steps += count;
  stats_.scheduled_seqs += decodes_ * count;
  stats_.scheduled_tokens += decodes_ * count;
  const std::int64_t growths = count * (count + 1) / 2;
  decode_context_sum_ += static_cast<double>(context_ * count + context_growth_ * growths);
  context_ += context_growth_ * count;
  growth_phase_ = (growth_phase_ + count) % growth_period_;
  attention_seconds_ += constant_step_.attention_s * static_cast<double>(count);
  count_rest(constant_step_.rest, decodes_, count);
  sums_.busy += constant_step_.total * count;
  if (max_in_flight_ == 1) exposed_host_ += host_step_ * count;
  stretch_left_ -= count;
  for (std::size_t i = 0; i < in_flight_; ++i) {
    flights_[i].begin += period * count;
    flights_[i].end += period * count;
  }
  device_free_ += period * count;
  return blocks.after_last;
}

void Replica::grow(KvUsage& kv, std::int64_t blocks, std::int64_t filled) const {
  const std::int64_t slots = blocks * block_size_;
  (growth_was_reserved_ ? kv.reserved : kv.allocated) += growth_was_reserved_ ? -slots : slots;
  kv.internal += slots - filled;
}

void Replica::grow_kv(std::int64_t blocks, std::int64_t filled) {
  grow(kv_, blocks, filled);
  note_peak();
}

void Replica::account_kv(SimTime now) {
  add_kv((now - last_action_).ns(), kv_);
  last_action_ = now;
}

void Replica::add_kv(std::int64_t ns, const KvUsage& kv) {
  const auto time = static_cast<double>(ns);
  allocated_ns_ += time * static_cast<double>(kv.allocated);
  internal_ns_ += time * static_cast<double>(kv.internal);
  if (kv.reserved != 0) reserved_ns_ += time * static_cast<double>(kv.reserved);
  if (kv.external != 0) external_ns_ += time * static_cast<double>(kv.external);
}

void Replica::count_rest(const StepCost* rest, std::int64_t decodes, std::int64_t steps) {
  PendingRest& pending = pending_rests_[static_cast<std::size_t>(decodes) % pending_rests_.size()];
  if (pending.rest != rest) {
    flush_rest(pending);
    pending.rest = rest;
  }
  pending.steps += steps;
}

void Replica::flush_rest(PendingRest& pending) {
  if (pending.steps == 0) return;
  sums_.add(*pending.rest, static_cast<double>(pending.steps));
  pending.steps = 0;
}

/// A time not after the end of the stretch: no step is shorter than the next one on a device at
/// rest.
SimTime Replica::stretch_bound() {
  Heat rested;
  const SimTime shortest =
      constant_steps_
          ? constant_step_.total
          : cost_->decode_step(decodes_, context_ + context_growth_, shared_, rested).total;
  const SimTime last_known = in_flight_ > 1 ? flights_[1].end : flights_[0].end;
  const std::int64_t unknown = in_flight_ > 1 ? stretch_left_ - 1 : stretch_left_;
  return last_known + shortest * unknown;
}

}  // namespace servesim
