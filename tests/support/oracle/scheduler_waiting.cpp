// The second pass of schedule(): admission of waiting sequences.
#include <algorithm>

#include "support/oracle/scheduler.hpp"

namespace servesim::oracle {

void Scheduler::schedule_waiting(StepPlan& plan, std::int64_t& budget) {
  const bool padding = only_decodes_scheduled(plan);
  Queue passed_over;
  while ((!waiting_.empty() || !skipped_.empty()) && budget > 0) {
    if (static_cast<std::int64_t>(running_.size()) >= config_.max_num_seqs) {
      break;
    }
    Queue& queue = next_queue();
    const std::size_t position = head_position(queue);
    const std::size_t head = queue[position];
    const auto pop_head = [&] {
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(position));
    };
    if (sequences_[head].stale > 0) {
      pop_head();
      passed_over.push_back(head);
      continue;
    }
    if (!try_admit(sequences_[head], plan, budget, padding)) {
      break;  // the head of the line blocks those behind it
    }
    pop_head();
    running_.push_back(head);
  }
  skipped_.insert(skipped_.begin(), passed_over.begin(), passed_over.end());
}

Scheduler::Queue& Scheduler::next_queue() {
  if (waiting_.empty() || skipped_.empty()) {
    return skipped_.empty() ? waiting_ : skipped_;
  }
  if (config_.policy == QueuePolicy::kFcfs) {
    return skipped_;
  }
  const std::size_t waiting = waiting_[head_position(waiting_)];
  const std::size_t skipped = skipped_[head_position(skipped_)];
  return comes_before(waiting, skipped) ? waiting_ : skipped_;
}

std::size_t Scheduler::head_position(const Queue& queue) const {
  std::size_t head = 0;
  if (config_.policy == QueuePolicy::kPriority) {
    for (std::size_t i = 1; i < queue.size(); ++i) {
      head = comes_before(queue[i], queue[head]) ? i : head;
    }
  }
  return head;
}

bool Scheduler::only_decodes_scheduled(const StepPlan& plan) const {
  // Called before admission, so the entries are those of running sequences, and their flags are
  // still those of the step before this one.
  const auto is_chunk = [this](const StepEntry& entry) {
    return sequences_[entry.sequence].prefill_chunk;
  };
  return !plan.entries.empty() && std::none_of(plan.entries.begin(), plan.entries.end(), is_chunk);
}

bool Scheduler::try_admit(Sequence& sequence, StepPlan& plan, std::int64_t& budget, bool padding) {
  const std::vector<BlockId> hits = kv_.lookup(sequence);
  const std::int64_t hit_tokens = static_cast<std::int64_t>(hits.size()) * config_.block_size;
  const std::int64_t drafts = config_.num_speculative_tokens;
  const std::int64_t threshold = config_.long_prefill_token_threshold;

  StepEntry entry;
  entry.sequence = sequence.index;
  entry.tokens = sequence.num_tokens() - hit_tokens;
  if (drafts > 0 && entry.tokens == 1 && padding) {
    // Dummy drafts give it the shape of the decodes it runs with.
    entry.tokens = 1 + drafts;
    entry.drafts = drafts;
    if (entry.tokens > budget || hit_tokens + entry.tokens > config_.max_model_len) {
      return false;
    }
  }
  if (0 < threshold && threshold < entry.tokens) {
    entry.tokens = threshold;
    entry.drafts = std::min(entry.drafts, threshold - 1);
  }
  if (!config_.enable_chunked_prefill && entry.tokens > budget) {
    return false;
  }
  entry.tokens = std::min(entry.tokens, budget);
  if (!kv_.allocate_admission(sequence, entry.tokens, hits, !running_.empty())) {
    return false;
  }
  sequence.computed = hit_tokens;
  budget -= entry.tokens;
  record_admission(sequence, entry, plan);
  return true;
}

void Scheduler::record_admission(Sequence& sequence, const StepEntry& entry, StepPlan& plan) {
  const bool resumes = sequence.status == SequenceStatus::kPreempted;
  (resumes ? plan.resumed : plan.admitted).push_back(sequence.index);
  plan.prefix_hit_tokens[sequence.index] = sequence.computed;
  plan.entries.push_back(entry);
  sequence.status = SequenceStatus::kRunning;
}

std::vector<std::size_t> Scheduler::waiting_in_order() const {
  Queue all = skipped_;
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  if (config_.policy == QueuePolicy::kPriority) {
    const auto before = [this](std::size_t a, std::size_t b) { return comes_before(a, b); };
    std::stable_sort(all.begin(), all.end(), before);
  }
  return all;
}

}  // namespace servesim::oracle
