#include "loop_engine.hpp"

#include <algorithm>

namespace servesim::bench {
namespace {
constexpr std::int64_t kTokenBudget = 8192;
}

void LoopEngine::schedule_running(std::int64_t& budget) {
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    const std::int64_t tokens = std::min(running_[i].known() - running_[i].computed, budget);
    const std::int64_t blocks = blocks_for(running_[i].computed + tokens) - running_[i].blocks;
    while (blocks > free_) {
      Sequence victim = running_.back();
      running_.pop_back();
      free_ += victim.blocks;
      victim.computed = victim.blocks = victim.scheduled = 0;
      waiting_.push_front(victim);
      preempted_ = true;
      if (running_.size() == i) return;
    }
    free_ -= blocks;
    running_[i].blocks += blocks;
    running_[i].scheduled = tokens;
    budget -= tokens;
  }
}

void LoopEngine::admit(std::int64_t& budget) {
  while (!waiting_.empty() && budget > 0 &&
         static_cast<std::int64_t>(running_.size()) < setup_.max_num_seqs) {
    Sequence sequence = waiting_.front();
    if (blocks_for(sequence.known()) > free_) return;
    sequence.scheduled = std::min(sequence.known(), budget);
    sequence.blocks = blocks_for(sequence.scheduled);
    free_ -= sequence.blocks;
    budget -= sequence.scheduled;
    running_.push_back(sequence);
    waiting_.pop_front();
  }
}

void LoopEngine::schedule() {
  preempted_ = false;
  std::int64_t budget = kTokenBudget;
  for (Sequence& sequence : running_) sequence.scheduled = 0;
  schedule_running(budget);
  if (!preempted_) admit(budget);
  tokens_ = kTokenBudget - budget;
}

void LoopEngine::update(Result& result) {
  for (Sequence& sequence : running_) {
    if (sequence.scheduled == 0) continue;
    sequence.computed += sequence.scheduled;
    if (sequence.computed < sequence.known()) continue;
    if (!sequence.has_first) sequence.first_token = now_;
    sequence.has_first = true;
    sequence.last_token = now_;
    if (++sequence.outputs < sequence.target) continue;
    free_ += sequence.blocks;
    ++result.completed;
    result.checksum += static_cast<std::uint64_t>(sequence.first_token) * 31 +
                       static_cast<std::uint64_t>(sequence.last_token);
  }
  std::erase_if(running_, [](const Sequence& s) { return s.outputs == s.target; });
}

LoopEngine::Result LoopEngine::run(TraceReader& trace) {
  Result result;
  Request next;
  bool more = trace.next(next);
  while (more || !running_.empty() || !waiting_.empty()) {
    if (running_.empty() && waiting_.empty()) now_ = std::max(now_, next.arrival.ns());
    while (more && next.arrival.ns() <= now_) {
      waiting_.push_back({next.input_tokens, next.output_tokens, 0, 0, 0, 0, 0, 0, false});
      more = trace.next(next);
    }
    schedule();
    if (tokens_ > 0) {
      ++result.steps;
      now_ += 1000 * (setup_.base_us + setup_.per_token_us * tokens_);
    }
    update(result);
  }
  return result;
}

}  // namespace servesim::bench
