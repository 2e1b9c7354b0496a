#include "support/oracle/scheduler.hpp"

#include <algorithm>
#include <tuple>

#include "support/oracle/oracle.hpp"

namespace servesim::oracle {

Scheduler::Scheduler(const Config& config, const std::vector<Request>& requests)
    : config_(config), kv_(config), sequences_(requests.size()) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    sequences_[i].index = i;
    sequences_[i].request = &requests[i];
  }
}

void Scheduler::add(std::size_t request) {
  kv_.extend_keys(sequences_.at(request));
  waiting_.push_back(request);
}

bool Scheduler::has_unfinished() const {
  return !waiting_.empty() || !skipped_.empty() || !running_.empty();
}

bool Scheduler::comes_before(std::size_t a, std::size_t b) const {
  const Request& left = *sequences_[a].request;
  const Request& right = *sequences_[b].request;
  return std::tie(left.priority, left.arrival_ns, left.id) <
         std::tie(right.priority, right.arrival_ns, right.id);
}

StepPlan Scheduler::schedule() {
  finished_since_schedule_ = false;
  StepPlan plan;
  std::int64_t budget = config_.max_num_batched_tokens;
  schedule_running(plan, budget);
  if (plan.preempted.empty()) {
    schedule_waiting(plan, budget);
  }
  plan.free_blocks = kv_.free_count();
  plan.shared_reads = kv_.shared_reads();
  plan.running = running_;
  plan.waiting = waiting_in_order();
  after_schedule(plan);
  return plan;
}

void Scheduler::after_schedule(StepPlan& plan) {
  for (StepEntry& entry : plan.entries) {
    Sequence& sequence = sequences_[entry.sequence];
    const std::int64_t already_had = sequence.high_water - sequence.computed;
    sequence.recomputed_tokens += std::clamp<std::int64_t>(already_had, 0, entry.tokens);

    entry.context = sequence.computed;
    sequence.computed += entry.tokens;
    sequence.inflight += entry.tokens;
    sequence.prefill_chunk = sequence.computed < sequence.num_tokens() + sequence.placeholders;
    entry.prefill_chunk = sequence.prefill_chunk;
    if (config_.async_scheduling && !sequence.prefill_chunk) {
      sequence.placeholders += 1 + entry.drafts;
      sequence.spec = config_.num_speculative_tokens;
    }
  }
}

StepResults Scheduler::update(const StepPlan& plan) {
  StepResults results;
  for (const StepEntry& entry : plan.entries) {
    update_entry(entry, results);
  }
  remove_finished(running_);
  remove_finished(waiting_);
  remove_finished(skipped_);
  if (!config_.async_scheduling) {
    for (const StepEntry& entry : plan.entries) {
      Sequence& sequence = sequences_[entry.sequence];
      if (sequence.status != SequenceStatus::kFinished) {
        sequence.spec = sequence.prefill_chunk ? 0 : config_.num_speculative_tokens;
      }
    }
  }
  results.free_blocks_after = kv_.free_count();
  return results;
}

void Scheduler::update_entry(const StepEntry& entry, StepResults& results) {
  Sequence& sequence = sequences_[entry.sequence];
  const bool finished = sequence.status == SequenceStatus::kFinished;
  const std::int64_t drafts = entry.drafts;
  // The recorded schedules accept drafts by this rule, which depends on nothing random.
  const std::int64_t known_outputs = finished ? 0 : sequence.outputs;
  const auto index = static_cast<std::int64_t>(sequence.index);
  const std::int64_t accepted = (7 * index + 3 * known_outputs) % (drafts + 1);
  if (drafts > 0) {
    results.accepted[entry.sequence] = accepted;
  }

  sequence.inflight -= entry.tokens;
  const bool stale = sequence.stale > 0;
  if (stale) {
    sequence.stale -= entry.tokens;
  }
  if (finished || entry.prefill_chunk) {
    return;
  }
  const std::int64_t rejected = drafts - accepted;
  if (!stale) {
    if (sequence.computed > 0) {
      sequence.computed -= rejected;
    }
    if (sequence.placeholders > 0) {
      sequence.placeholders -= rejected;
    }
  }
  append_tokens(sequence, 1 + accepted, stale, results);
}

void Scheduler::append_tokens(Sequence& sequence, std::int64_t returned, bool stale,
                              StepResults& results) {
  const SequenceStatus status_before = sequence.status;
  std::int64_t appended = 0;
  bool stopped = false;
  while (appended < returned && !stopped) {
    sequence.outputs += 1;
    appended += 1;
    stopped = sequence.num_tokens() >= config_.max_model_len ||
              sequence.outputs >= sequence.request->output_len;
  }
  kv_.extend_keys(sequence);
  results.tokens_out[sequence.index] = appended;

  if (config_.async_scheduling && !stale) {
    sequence.placeholders -= appended;
    if (status_before == SequenceStatus::kRunning) {
      kv_.register_blocks(sequence, sequence.computed - sequence.placeholders);
    }
  }
  if (stopped) {
    kv_.release(sequence);
    sequence.status = SequenceStatus::kFinished;
    results.finished.push_back(sequence.index);
    finished_since_schedule_ = true;
  }
}

void Scheduler::remove_finished(Queue& queue) const {
  std::erase_if(queue, [this](std::size_t request) {
    return sequences_[request].status == SequenceStatus::kFinished;
  });
}

void Scheduler::check_integrity() const {
  kv_.check_integrity(sequences_);
  const auto running = static_cast<std::int64_t>(running_.size());
  ensure(running <= config_.max_num_seqs, "more sequences run than max_num_seqs");
  std::vector<int> times_queued(sequences_.size(), 0);
  for (const Queue* queue : {&waiting_, &skipped_, &running_}) {
    for (const std::size_t request : *queue) {
      times_queued[request] += 1;
      const bool runs = sequences_[request].status == SequenceStatus::kRunning;
      ensure(runs == (queue == &running_), "a sequence is in a queue against its status");
    }
  }
  for (const Sequence& sequence : sequences_) {
    const bool started = sequence.computed > 0 || sequence.preemptions > 0;
    const bool done = sequence.status == SequenceStatus::kFinished;
    const int queued = times_queued[sequence.index];
    ensure(queued <= 1 && !(done && queued == 1), "a sequence is queued twice or after its end");
    ensure(!started || done || queued == 1, "a sequence was lost");
    ensure(sequence.inflight >= 0 && sequence.stale >= 0, "a count of tokens is negative");
    ensure(sequence.placeholders >= 0, "a count of placeholders is negative");
    ensure(sequence.computed <= config_.max_model_len, "computed past the model's length");
    const auto blocks = static_cast<std::int64_t>(sequence.blocks.size());
    const bool holds = sequence.status == SequenceStatus::kRunning;
    ensure(!holds || blocks_of(config_, sequence.computed) <= blocks,
           "computed tokens without a slot");
    ensure(holds || sequence.blocks.empty(), "blocks are held by a sequence that does not run");
  }
}

}  // namespace servesim::oracle
