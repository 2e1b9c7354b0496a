// The first pass of schedule(): the running sequences, and whom they preempt.
#include <algorithm>
#include <tuple>

#include "support/oracle/scheduler.hpp"

namespace servesim::oracle {

void Scheduler::schedule_running(StepPlan& plan, std::int64_t& budget) {
  std::size_t position = 0;
  while (position < running_.size() && budget > 0) {
    const std::size_t request = running_[position];
    Sequence& sequence = sequences_[request];
    const std::int64_t tokens = running_tokens(sequence, budget);
    // Less than 0 only when dummy drafts reached the model's length: nothing is left to schedule.
    if (last_token_is_in_flight(sequence) || tokens <= 0) {
      position += 1;  // later sequences may still run
      continue;
    }

    bool allocated = kv_.allocate_running(sequence, tokens);
    while (!allocated) {
      const std::size_t victim_position = choose_victim();
      const std::size_t victim = running_[victim_position];
      evict_from_running(victim_position, plan, budget);
      if (victim == request) {
        return;  // nothing after it is scheduled either
      }
      if (victim_position < position) {
        position -= 1;
      }
      allocated = kv_.allocate_running(sequence, tokens);
    }

    StepEntry entry;
    entry.sequence = request;
    entry.tokens = tokens;
    const std::int64_t beyond_known =
        tokens + sequence.computed - sequence.num_tokens() - sequence.placeholders;
    if (sequence.spec > 0 && beyond_known > 0) {
      entry.drafts = std::min(beyond_known, sequence.spec);
    }
    sequence.spec = 0;
    plan.entries.push_back(entry);
    budget -= tokens;
    position += 1;
  }
}

bool Scheduler::last_token_is_in_flight(const Sequence& sequence) const {
  // Placeholders exist under asynchronous scheduling only.
  const Request& request = *sequence.request;
  return sequence.placeholders > 0 &&
         sequence.computed + 2 - sequence.placeholders >= request.prompt_len + request.output_len;
}

std::int64_t Scheduler::running_tokens(const Sequence& sequence, std::int64_t budget) const {
  const std::int64_t threshold = config_.long_prefill_token_threshold;
  std::int64_t tokens =
      sequence.num_tokens() + sequence.spec + sequence.placeholders - sequence.computed;
  if (0 < threshold && threshold < tokens) {
    tokens = threshold;
  }
  return std::min({tokens, budget, config_.max_model_len - 1 - sequence.computed});
}

std::size_t Scheduler::choose_victim() const {
  if (config_.policy == QueuePolicy::kFcfs) {
    return running_.size() - 1;
  }
  // The least urgent one, the first of them on a tie; ids do not matter here.
  std::size_t victim = 0;
  for (std::size_t i = 1; i < running_.size(); ++i) {
    const Request& best = *sequences_[running_[victim]].request;
    const Request& other = *sequences_[running_[i]].request;
    if (std::tie(best.priority, best.arrival_ns) < std::tie(other.priority, other.arrival_ns)) {
      victim = i;
    }
  }
  return victim;
}

void Scheduler::evict_from_running(std::size_t position, StepPlan& plan, std::int64_t& budget) {
  const std::size_t victim = running_[position];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(position));
  // A victim that was already scheduled in this step leaves the step and returns its budget.
  std::erase_if(plan.entries, [&](const StepEntry& entry) {
    if (entry.sequence != victim) {
      return false;
    }
    budget += entry.tokens;
    return true;
  });
  preempt(sequences_[victim]);
  plan.preempted.push_back(victim);
}

void Scheduler::preempt(Sequence& sequence) {
  kv_.release(sequence);
  const std::int64_t lost = std::min(sequence.computed, sequence.num_tokens());
  sequence.high_water = std::max(sequence.high_water, lost);
  sequence.computed = 0;
  sequence.spec = 0;
  sequence.placeholders = 0;
  sequence.stale = sequence.inflight;
  sequence.preemptions += 1;
  sequence.status = SequenceStatus::kPreempted;
  waiting_.insert(waiting_.begin(), sequence.index);
}

}  // namespace servesim::oracle
