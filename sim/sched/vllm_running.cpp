// The first pass of a step: the sequences that run, and whom they preempt (section 3 of the
// semantics).
#include <algorithm>
#include <tuple>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

bool VllmScheduler::last_token_in_flight(const Sequence& s) const {
  return s.placeholders > 0 && s.computed + 2 - s.placeholders >= s.prompt + s.max_tokens;
}

std::int64_t VllmScheduler::wanted_tokens(const Sequence& s) const {
  if (last_token_in_flight(s)) return 0;
  std::int64_t tokens = s.num_tokens() + s.drafts + s.placeholders - s.computed;
  const std::int64_t threshold = config_.long_prefill_token_threshold;
  if (threshold > 0) tokens = std::min(tokens, threshold);
  return std::max<std::int64_t>(0, std::min(tokens, config_.max_model_len - 1 - s.computed));
}

/// Without drafts, as long as all demands fit, the order of the running list decides nothing: the
/// members take a token each, the specials what they want. Where tokens are short and the only
/// special is last in line, it gets the rest; where blocks are short, FCFS takes its victims from
/// the tail. Everything else is left to the loop.
bool VllmScheduler::schedule_running_fast(Decision& decision) {
  if (speculates()) return false;
  std::int64_t wanted = 0;
  std::int64_t wanting = 0;
  SeqId last = kNoSeq;
  for (const SeqId id : specials_) {
    const std::int64_t tokens = wanted_tokens(store_[id]);
    if (has_regions() && outgrows_region(id, tokens)) return false;
    wanted += tokens;
    wanting += tokens > 0 ? 1 : 0;
    if (tokens > 0) last = id;
  }
  const std::int64_t room = decision.budget - group().count();
  const bool last_in_line = wanting == 0 || (wanting == 1 && last == running_.tail());
  if (room < 0 || (wanted > room && !last_in_line)) return false;

  std::int64_t blocks = group().growth(lane_->step);
  for (const SeqId id : specials_) {
    const Sequence& s = store_[id];
    const std::int64_t tokens = std::min(wanted_tokens(s), room);
    if (tokens > 0) blocks += blocks_for(s.computed + tokens) - s.blocks;
  }
  if (blocks > pool_.free()) {
    if (!last_in_line || config_.scheduling_policy == SchedulingPolicy::kPriority) return false;
    make_room_from_tail(decision);
  } else {
    take_from_pool(group().growth(lane_->step));
  }
  decision.budget -= group().count();
  scratch_ = specials_;
  for (const SeqId id : scratch_) {
    const std::int64_t tokens = std::min(wanted_tokens(store_[id]), decision.budget);
    if (tokens <= 0) continue;
    if (allocate(id, tokens)) {
      schedule(decision, id, tokens, 0);
    } else {
      preempt(decision, id);  // the last in line: no one behind it to take from
    }
  }
  return true;
}

/// vLLM's loop seen from the members: each in line that needs blocks takes them, until the pool is
/// empty; then the last in line is preempted and the line goes on. The demand that is left is
/// always that of the last in line, so a victim that needs blocks itself takes its demand with it,
/// and gives back what it could not yet use.
void VllmScheduler::make_room_from_tail(Decision& decision) {
  std::int64_t demand = group().growth(lane_->step);
  while (true) {
    const std::int64_t taken = std::min(demand, pool_.free());
    take_from_pool(taken);
    demand -= taken;
    if (demand == 0) return;
    const SeqId victim = running_.tail();
    if (is_member(victim) && group().grows(store_[victim].group_base, lane_->step)) {
      const std::int64_t unused = store_[victim].growth - demand;
      demand = std::max<std::int64_t>(-unused, 0);
      if (unused > 0) give_back_to_pool(unused);
    }
    preempt(decision, victim);
  }
}

void VllmScheduler::schedule_running_one_by_one(Decision& decision) {
  rebuild_specials_ = true;
  specials_.clear();
  for (SeqId id = running_.head(); id != kNoSeq; id = store_[id].after) {
    if (is_member(id)) leave_group(id, lane_->step - 1);
  }
  for (SeqId id = running_.head(); id != kNoSeq && decision.budget > 0;) {
    if (!schedule_one(decision, id)) return;
    id = store_[id].after;
  }
}

/// False when `id` itself had to give way: nothing after it is scheduled.
bool VllmScheduler::schedule_one(Decision& decision, SeqId id) {
  if (store_[id].grouped) return true;  // its token is in flight in another lane
  const std::int64_t tokens = std::min(wanted_tokens(store_[id]), decision.budget);
  if (tokens <= 0) return true;
  while (!allocate(id, tokens)) {
    const SeqId victim = choose_victim();
    undo(decision, victim);
    preempt(decision, victim);
    if (victim == id) return false;
  }
  Sequence& s = store_[id];
  const std::int64_t beyond_known = tokens + s.computed - s.num_tokens() - s.placeholders;
  const std::int64_t drafts = std::clamp<std::int64_t>(beyond_known, 0, s.drafts);
  s.drafts = 0;
  schedule(decision, id, tokens, drafts);
  return true;
}

void VllmScheduler::schedule(Decision& decision, SeqId id, std::int64_t tokens,
                             std::int64_t drafts) {
  const Sequence& s = store_[id];
  const bool samples = s.computed + tokens >= s.num_tokens() + s.placeholders;
  decision.record.entries.push_back(
      {id, s.generation, s.ticket, s.index, tokens, drafts, s.computed, samples, false});
  decision.budget -= tokens;
}

SeqId VllmScheduler::choose_victim() const {
  if (config_.scheduling_policy == SchedulingPolicy::kFcfs) return running_.tail();
  SeqId victim = running_.head();
  for (SeqId id = store_[victim].after; id != kNoSeq; id = store_[id].after) {
    const Sequence& worst = store_[victim];
    const Sequence& other = store_[id];
    if (std::tie(worst.priority, worst.arrival) < std::tie(other.priority, other.arrival))
      victim = id;
  }
  return victim;
}

/// A victim that was already scheduled in this step gives its tokens back.
void VllmScheduler::undo(Decision& decision, SeqId victim) {
  std::erase_if(decision.record.entries, [&](const Entry& entry) {
    if (entry.seq != victim) return false;
    decision.budget += entry.tokens;
    return true;
  });
}

void VllmScheduler::preempt(Decision& decision, SeqId victim) {
  Sequence& s = store_[victim];
  if (s.grouped) {
    leave_group_after_last_step(victim);
  } else if (!rebuild_specials_) {
    drop_special(victim);
  }
  running_.remove(store_, victim);
  if (BlockTable* table = table_of(victim)) pool_.make_findable(*table);
  s.lost = std::max(s.lost, std::min(s.computed, s.num_tokens()));
  if (config_.preemption_mode == PreemptionMode::kSwap) swap_out(s);
  release(victim);
  s.computed = 0;
  s.drafts = 0;
  s.placeholders = 0;
  s.stale = s.inflight;
  if (s.stale > 0) ++stale_sequences_;
  ++s.preemptions;
  s.status = SequenceStatus::kPreempted;
  s.skipped = false;
  waiting_.push_front(victim);
  ++counters_.preemptions;
  sink_.on_preempted(s.ticket, now_);
  decision.preempted = true;
  if (logs()) decision.record.logged.preempted.push_back(s.ticket);
}

}  // namespace servesim
