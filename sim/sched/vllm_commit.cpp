// Taking in the results of a step (section 5 of the semantics).
#include <algorithm>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

void VllmScheduler::commit(SimTime done) {
  ++committed_;
  if (brings_only_tokens(committed_) && config_.async_scheduling && !logs()) {
    lane_->last_done = done;
  } else {
    take_results(record_of(committed_), done);
  }
}

void VllmScheduler::take_results(Record& record, SimTime done) {
  finished_.clear();
  if (has_pipeline() && record.lane != nullptr) {
    record.lane->busy = false;
    if (record.group_count > 0) {
      sink_.on_token_gaps(done - record.lane->last_done, record.group_count);
    }
  }
  for (const Entry& entry : record.entries) take_result(entry, record.logged, done);
  for (const SeqId id : record.departed) take_departed(id, done);
  if (!config_.async_scheduling && record.lane != nullptr) collect_finished_members(record, done);
  // The order of the running list decides in which order blocks are freed, and so evicted later.
  if (finished_.size() > 1) {
    std::sort(finished_.begin(), finished_.end(),
              [](const Finished& a, const Finished& b) { return a.run_number < b.run_number; });
  }
  for (const Finished& finished : finished_) finish(finished);
  if (speculates() && !config_.async_scheduling) propose_drafts(record);
  if (logs()) log_results(record, done);
  if (record.lane != nullptr) record.lane->last_done = done;
  if (plan_.results_before != StepResults::kEnds) return;
  plan_.results_before = StepResults::kTokens;
  fill_in_kv_usage();
  plan_.shared = shared_context();
}

void VllmScheduler::take_result(const Entry& entry, LoggedStep& logged, SimTime done) {
  Sequence& s = store_[entry.seq];
  const bool gone = s.generation != entry.generation;
  if (entry.joined) {  // the group keeps its counters
    if (gone) return;
    note_tokens(s, 1, done);
    if (logs()) logged.tokens_out.emplace_back(s.ticket, 1);
    return;
  }
  const std::int64_t accepted = entry.drafts > 0 ? accepted_drafts(entry, gone) : 0;
  if (logs() && entry.drafts > 0) logged.accepted.emplace_back(entry.ticket, accepted);
  if (gone) return;
  s.inflight -= entry.tokens;
  const bool stale = rarely(s.stale > 0);
  if (stale) {
    s.stale -= entry.tokens;
    if (s.stale == 0) --stale_sequences_;
  }
  if (!entry.samples) return;
  const std::int64_t rejected = entry.drafts - accepted;
  if (!stale) {
    if (s.computed > 0) {
      fill_slots(s.computed, s.computed - rejected);
      s.computed -= rejected;
    }
    if (s.placeholders > 0) s.placeholders -= rejected;
  }
  const std::int64_t tokens = std::min(1 + accepted, s.target - s.outputs);
  if (logs()) logged.tokens_out.emplace_back(s.ticket, tokens);
  take_tokens(entry.seq, tokens, stale, done);
}

void VllmScheduler::take_tokens(SeqId id, std::int64_t tokens, bool stale, SimTime done) {
  Sequence& s = store_[id];
  note_tokens(s, tokens, done);
  s.outputs += tokens;
  if (config_.async_scheduling && !stale) {
    s.placeholders -= tokens;
    BlockTable* table = table_of(id);
    if (table != nullptr && s.status == SequenceStatus::kRunning) {
      pool_.register_blocks(*table, block_size_.full(s.computed - s.placeholders));
    }
  }
  if (s.outputs == s.target) finished_.push_back({s.run_number, id, true});
}

std::int64_t VllmScheduler::accepted_drafts(const Entry& entry, bool gone) {
  const std::int64_t outputs = gone ? 0 : store_[entry.seq].outputs;
  if (config_.speculative.deterministic_acceptance) {
    const auto index = static_cast<std::int64_t>(entry.index);
    return (7 * index + 3 * outputs) % (entry.drafts + 1);
  }
  std::int64_t accepted = 0;
  while (accepted < entry.drafts && acceptance_.uniform() < config_.speculative.acceptance_rate)
    ++accepted;
  return accepted;
}

/// Tells of the gaps before `tokens` new tokens; those of one step come together.
void VllmScheduler::note_tokens(Sequence& s, std::int64_t tokens, SimTime done) {
  if (s.has_first_token) {
    sink_.on_token_gaps(done - s.last_token, 1);
  } else {
    s.has_first_token = true;
    s.first_token = done;
  }
  if (tokens > 1) sink_.on_token_gaps(SimTime(0), tokens - 1);
  s.last_token = done;
}

/// A sequence that left the group while a token of it was in flight. Its gap was told with the
/// group's.
void VllmScheduler::take_departed(SeqId id, SimTime done) {
  Sequence& s = store_[id];
  s.last_token = done;
  --s.inflight;
  if (s.grouped) return;  // it is back, and its other counters are the group's
  const bool stale = rarely(s.stale > 0);
  if (stale && --s.stale == 0) --stale_sequences_;
  ++s.outputs;
  if (!stale) {
    --s.placeholders;
    if (BlockTable* table = table_of(id)) {
      pool_.register_blocks(*table, block_size_.full(s.computed - s.placeholders));
    }
  }
  if (s.outputs == s.target) finished_.push_back({s.run_number, id, true});
}

void VllmScheduler::collect_finished_members(const Record& record, SimTime done) {
  CompletionWheel& completions = record.lane->completions;
  const std::int64_t step = record.lane_step;
  for (SeqId id = completions.due(step); id != kNoSeq; id = completions.due(step)) {
    leave_group(id, step);
    store_[id].last_token = done;
    if (store_[id].last_step > step) {  // its region is full, or the window behind it
      make_special(id);
      continue;
    }
    finished_.push_back({store_[id].run_number, id, false});
  }
}

void VllmScheduler::propose_drafts(const Record& record) {
  for (const Entry& entry : record.entries) {
    Sequence& s = store_[entry.seq];
    if (s.generation != entry.generation) continue;
    s.drafts = s.prefill_chunk ? 0 : config_.speculative.num_speculative_tokens;
  }
}

void VllmScheduler::finish(const Finished& finished) {
  const SeqId id = finished.seq;
  Sequence& s = store_[id];
  if (mostly(s.status == SequenceStatus::kRunning)) {
    running_.remove(store_, id);
    if (finished.special) drop_special(id);
    if (rarely(s.kv_role == KvRole::kSend || s.kv_role == KvRole::kPush)) {
      keep_kv(id);
    } else {
      release(id);
    }
  } else {  // preempted with its last token in flight
    (s.skipped ? skipped_ : waiting_).remove(id);
    drop_swapped(s);
  }
  if (pool_.caching()) close_content(id);
  if (logs()) record_of(committed_).logged.finished.push_back(s.ticket);
  const Ticket ticket = s.ticket;
  const SequenceOutcome outcome{s.scheduled, s.first_token,       s.last_token,
                                s.outputs,   s.prefix_hit_tokens, s.preemptions};
  store_.destroy(id);
  finished_since_plan_ = true;
  sink_.on_finished(ticket, outcome);
}

}  // namespace servesim
