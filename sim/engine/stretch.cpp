// Stretches of equal decode steps: the part of Replica that runs once per step, or once for many.
#include <algorithm>

#include "engine/replica.hpp"

namespace servesim {
namespace {

/// Growth of the blocks over the steps of a stretch: sums that would otherwise take a loop over the
/// steps.
struct BlockGrowth {
  const std::int32_t* table;
  BlockSize block_size;
  std::int64_t phase;  ///< of the step before the first
  std::int64_t cycle;  ///< blocks begun in block_size steps

  struct Sums {
    std::int64_t after_last = 0;  ///< G(steps)
    std::int64_t sum = 0;         ///< G(1) + ... + G(steps - 1), what lies between the steps
  };

  /// G(j) is the number of blocks begun in the first j steps.
  Sums over(std::int64_t steps) const {
    const std::int64_t period = block_size.tokens();
    const std::int64_t cycles = block_size.full(steps);
    const std::int64_t left = steps - cycles * period;
    const std::int32_t* const begun = table + phase + 1;
    std::int64_t blocks = 0;  // G(left)
    std::int64_t area = 0;    // G(1) + ... + G(left)
    for (std::int64_t r = 0; r < left; ++r) {
      blocks += begun[r];
      area += begun[r] * (left - r);
    }
    if (cycles == 0) return {blocks, area - blocks};
    std::int64_t whole = area + (period - left) * blocks;  // G(1) + ... + G(period)
    for (std::int64_t r = left; r < period; ++r) whole += begun[r] * (period - r);
    const std::int64_t last = cycles * cycle + blocks;
    const std::int64_t all = cycle * period * (cycles * (cycles - 1) / 2) + cycles * whole +
                             left * cycles * cycle + area;
    return {last, all - last};
  }
};

}  // namespace

/// Takes the steps of the stretch that are scheduled before `until` (at it, too, when `inclusive`).
void Replica::advance(SimTime until, bool inclusive) {
  if (stretch_left_ == 0) return;
  const Taken taken = is_watched() ? take_watched(until, inclusive) : take_until(until, inclusive);
  if (taken.steps == 0) return;
  policy_->extend(taken.steps, taken.committed, taken.blocks, last_done_);
}

Replica::Taken Replica::take_until(SimTime until, bool inclusive) {
  Taken taken;
  while (stretch_left_ > 0) {
    const SimTime at = front().end;
    if (inclusive ? at > until : at >= until) break;
    const bool tells = !settled();
    if (constant_steps_ && !tells) {
      const std::int64_t count = steps_at_once(until, inclusive);
      if (count > 1) {
        taken.steps += count;
        taken.blocks += take_steps(count);
        continue;
      }
    }
    ++taken.steps;
    taken.committed += tells ? 1 : 0;
    account_kv(at);
    tells ? settle(at) : take_results(at);
    taken.blocks += launch_next(at);
  }
  return taken;
}

/// Takes up the stretch of `plan`, whose own step was launched last.
void Replica::begin_stretch(const StepPlan& plan) {
  stretch_left_ = plan.stretch.steps;
  if (stretch_left_ == 0) return;
  const bool brings_more =
      plan.results != StepResults::kTokens || plan.results_before != StepResults::kTokens;
  if (brings_more) {
    if (is_watched()) stretch_left_ = 0;  // each step is told of singly
    flights_[in_flight_ - 1].results = plan.results;
    if (in_flight_ > 1) flights_[in_flight_ - 2].results = plan.results_before;
  }
  context_ = plan.stretch.context;
  growth_phase_ = plan.stretch.growth_phase;
  if (constant_steps_) price_ = &constant_price(plan.stretch.seqs);
}

/// Whether the batches in flight bring nothing that the policy has to be told of singly.
bool Replica::settled() const {
  return front().results == StepResults::kTokens &&
         (in_flight_ == 1 || flights_[1].results == StepResults::kTokens);
}

/// REQUIRES: a step's price does not depend on the context.
const DecodeStep& Replica::constant_price(std::int64_t seqs) {
  const auto index = static_cast<std::size_t>(seqs);
  if (rarely(index >= constant_prices_.size() || constant_prices_[index].rest == nullptr)) {
    add_constant_price(index);
  }
  return constant_prices_[index];
}

void Replica::add_constant_price(std::size_t seqs) {
  if (seqs >= constant_prices_.size()) constant_prices_.resize(2 * seqs + 1);
  constant_prices_[seqs] = cost_->decode_step(static_cast<std::int64_t>(seqs), 0, {}, heat_);
}

/// How many steps of equal period lie before `until`; 0 when they have to be taken singly.
std::int64_t Replica::steps_at_once(SimTime until, bool inclusive) const {
  SimTime period = price_->total;
  const std::int64_t gap_count = plan_->stretch.gap_count;
  if (front().gap_count != gap_count) return 0;
  if (max_in_flight_ == 1) {
    period += host_step_;
  } else if (flights_[1].gap_count != gap_count || flights_[1].end - front().end != period ||
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

/// Takes in the oldest batch where the policy is to hear of its results, which may free KV.
void Replica::settle(SimTime at) {
  const bool ends = front().results == StepResults::kEnds;
  commit(at);
  if (ends) kv_ = plan_->kv;
}

/// Schedules the next step of the stretch. Returns the blocks it begins.
std::int64_t Replica::launch_next(SimTime at) {
  const Stretch& stretch = plan_->stretch;
  --stretch_left_;
  growth_phase_ = next_phase();
  const std::int64_t blocks = stretch.block_growth[growth_phase_];
  grow_kv(blocks, stretch.slot_growth);
  cool(at + host_step_);
  launch_decodes(at, stretch.seqs, context_, stretch.gap_count);
  context_ += stretch.context_growth;
  return blocks;
}

/// A step of `seqs` decodes with `context` tokens computed before, scheduled `now`.
void Replica::launch_decodes(SimTime now, std::int64_t seqs, std::int64_t context,
                             std::int64_t gap_count) {
  if (constant_steps_) {
    price_ = &constant_price(seqs);
  } else {
    varying_price_ = cost_->decode_step(seqs, context, plan_->shared, heat_);
    price_ = &varying_price_;
  }
  ++stats_.steps;
  stats_.scheduled_seqs += seqs;
  stats_.scheduled_tokens += seqs;
  attention_seconds_ += price_->attention_s;
  decode_context_sum_ += static_cast<double>(context);
  count_rest(price_->rest, seqs, 1);
  push(launch(now, price_->total), gap_count);
}

/// The same for `count` steps of equal length.
std::int64_t Replica::take_steps(std::int64_t count) {
  const Stretch& stretch = plan_->stretch;
  const SimTime period = max_in_flight_ == 1 ? price_->total + host_step_ : price_->total;
  const SimTime first = front().end;
  account_kv(first);
  if (stretch.gap_count > 0 && first - last_done_ == period) {
    sink_.on_token_gaps(period, stretch.gap_count * count);
  } else if (stretch.gap_count > 0) {
    sink_.on_token_gaps(first - last_done_, stretch.gap_count);
    sink_.on_token_gaps(period, stretch.gap_count * (count - 1));
  }
  last_done_ = last_action_ = first + period * (count - 1);

  const BlockGrowth::Sums blocks =
      BlockGrowth{stretch.block_growth, block_size_, growth_phase_, stretch.slot_growth}.over(
          count);
  KvUsage between{kv_.allocated * (count - 1), kv_.internal * (count - 1),
                  kv_.reserved * (count - 1), kv_.external * (count - 1)};
  grow(between, blocks.sum, stretch.slot_growth * (count * (count - 1) / 2));
  add_kv(period.ns(), between);
  grow_kv(blocks.after_last, stretch.slot_growth * count);

  stats_.steps += count;
  stats_.scheduled_seqs += stretch.seqs * count;
  stats_.scheduled_tokens += stretch.seqs * count;
  const std::int64_t growths = count * (count - 1) / 2;
  decode_context_sum_ += static_cast<double>(context_ * count + stretch.context_growth * growths);
  context_ += stretch.context_growth * count;
  growth_phase_ = block_size_.mod_floor(growth_phase_ + count);
  attention_seconds_ += price_->attention_s * static_cast<double>(count);
  count_rest(price_->rest, stretch.seqs, count);
  sums_.busy += price_->total * count;
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
  const std::int64_t slots = blocks * block_size_.tokens();
  if (plan_->stretch.growth_was_reserved) {
    kv.reserved -= slots;
  } else {
    kv.allocated += slots;
  }
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
  if (rarely(kv.reserved != 0)) reserved_ns_ += time * static_cast<double>(kv.reserved);
  if (rarely(kv.external != 0)) external_ns_ += time * static_cast<double>(kv.external);
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
          ? price_->total
          : cost_->decode_step(plan_->stretch.seqs, context_, plan_->shared, rested).total;
  const auto known = static_cast<std::int64_t>(in_flight_ - 1);  // steps that are priced already
  return flights_[in_flight_ - 1].end + shortest * (stretch_left_ - known);
}

}  // namespace servesim
