// KV that comes from, or goes to, another engine (section 8 of the semantics).
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

/// The head of `queue` takes blocks for its whole prompt, registers none of them, and waits for
/// their KV without a place in the running list. False when they do not fit beside what the running
/// prompts still need.
bool VllmScheduler::await_kv(WaitingQueue& queue, SeqId id) {
  Sequence& s = store_[id];
  const std::int64_t hit = match_prefix(id);
  const std::int64_t watermark = running_.empty() ? 0 : watermark_blocks_;
  const std::int64_t blocks = blocks_for(s.prompt) - match_.blocks;
  if (blocks > pool_.free() - match_.evictable - watermark - blocks_prompts_need()) return false;
  queue.remove(id);
  if (BlockTable* table = table_of(id); table != nullptr && match_.blocks > 0)
    pool_.touch(*table, match_);
  pool_.take(blocks);
  s.blocks = match_.blocks + blocks;
  held_ += s.blocks;
  s.computed = hit;
  s.prefix_hit_tokens = hit;
  s.status = SequenceStatus::kAwaitsKv;
  s.kv_number = ++kv_numbers_;
  counters_.prefix_hit_tokens += hit;
  counters_.prefix_queried_tokens += s.prompt;
  awaited_slots_ += blocks * config_.block_size;
  awaiting_.emplace(s.ticket, id);
  sink_.on_kv_wanted(s.ticket, hit, blocks);
  return true;
}

/// Blocks that prompts which are being computed have yet to take.
std::int64_t VllmScheduler::blocks_prompts_need() const {
  std::int64_t blocks = 0;
  for (const SeqId id : specials_) {
    blocks += std::max<std::int64_t>(blocks_for(store_[id].num_tokens()) - store_[id].blocks, 0);
  }
  return blocks;
}

void VllmScheduler::kv_arrived(Ticket ticket) {
  const auto found = awaiting_.find(ticket);
  if (found == awaiting_.end()) throw std::logic_error("KV arrived that nobody waits for");
  const SeqId id = found->second;
  if (BlockTable* table = table_of(id)) {
    pool_.register_blocks(*table, block_size_.full(store_[id].prompt));
  }
  // The last token is computed again, to sample from it.
  stop_awaiting(id, store_[id].prompt - 1);
}

/// A sequence goes on with `computed` tokens of its prompt, in the place it had in the queue.
void VllmScheduler::stop_awaiting(SeqId id, std::int64_t computed) {
  Sequence& s = store_[id];
  awaiting_.erase(s.ticket);
  awaited_slots_ -= empty_slots(s.blocks, s.computed);
  s.computed = computed;
  slack_ += empty_slots(s.blocks, s.computed);
  s.status = SequenceStatus::kWaiting;
  s.kv_role = KvRole::kLocal;
  s.kv_loaded = true;
  s.skipped = true;
  skipped_.insert_loaded(id);
  stalled_ = false;
}

/// The sequence of a ticket, by looking at all of them; kNoSeq when it has ended.
SeqId VllmScheduler::find(Ticket ticket) const {
  if (const auto found = awaiting_.find(ticket); found != awaiting_.end()) return found->second;
  SeqId found = kNoSeq;
  const auto look = [&](SeqId id) {
    if (store_[id].ticket == ticket) found = id;
  };
  for (SeqId id = running_.head(); id != kNoSeq; id = store_[id].after) look(id);
  waiting_.for_each(look);
  skipped_.for_each(look);
  return found;
}

void VllmScheduler::kv_failed(Ticket ticket) {
  const SeqId id = find(ticket);
  if (id == kNoSeq) return;
  if (store_[id].status == SequenceStatus::kAwaitsKv) {
    stop_awaiting(id, store_[id].computed);
  } else {
    store_[id].kv_role = KvRole::kLocal;
  }
}

/// Steps in flight that compute some of it ignore what they yield.
SequenceOutcome VllmScheduler::abort(Ticket ticket) {
  if (kept_.contains(ticket)) {
    release_kv(ticket);
    return {};
  }
  const SeqId id = find(ticket);
  if (id == kNoSeq) throw std::logic_error("a request is aborted that is not here");
  Sequence& s = store_[id];
  std::int64_t unseen = 0;
  if (s.stale > 0) --stale_sequences_;
  drop_swapped(s);
  switch (s.status) {
    case SequenceStatus::kRunning:
      if (s.grouped) {
        // Without batches side by side, leave_group() takes the token in flight as there.
        const bool alone = !config_.async_scheduling && !has_pipeline();
        unseen = alone && committed_ < step_ ? 1 : 0;
        leave_group(id, lanes_[s.lane].step);
      } else {
        drop_special(id);
      }
      running_.remove(store_, id);
      release(id);
      break;
    case SequenceStatus::kAwaitsKv:
      awaiting_.erase(ticket);
      awaited_slots_ -= empty_slots(s.blocks, s.computed);
      slack_ += empty_slots(s.blocks, s.computed);  // which release() takes off
      release(id);
      break;
    case SequenceStatus::kWaiting:
    case SequenceStatus::kPreempted:
      (s.skipped ? skipped_ : waiting_).remove(id);
      if (s.kv_loaded) release(id);
      break;
  }
  for (Record& record : records_) std::erase(record.departed, id);
  if (pool_.caching()) close_content(id);
  const SequenceOutcome outcome{s.run_number > 0 ? s.scheduled : kNever,
                                s.has_first_token ? s.first_token : kNever,
                                s.has_first_token ? s.last_token : kNever,
                                s.outputs - unseen,
                                s.prefix_hit_tokens,
                                s.preemptions};
  store_.destroy(id);
  finished_since_plan_ = true;
  stalled_ = false;
  return outcome;
}

/// Sets aside the blocks of a sequence that has ended.
void VllmScheduler::keep_kv(SeqId id) {
  Sequence& s = store_[id];
  KeptBlocks kept{{}, s.blocks, s.computed};
  if (BlockTable* table = table_of(id)) {
    kept.table.held = std::move(table->held);
    kept.table.registered = std::exchange(table->registered, 0);
    table->held.clear();
  }
  kept_.emplace(s.ticket, std::move(kept));
  s.blocks = 0;
}

bool VllmScheduler::release_kv(Ticket ticket) {
  const auto found = kept_.find(ticket);
  if (found == kept_.end()) throw std::logic_error("KV is released that nobody keeps");
  KeptBlocks& kept = found->second;
  slack_ -= empty_slots(kept.blocks, kept.computed);
  held_ -= kept.blocks;
  if (pool_.caching()) {
    pool_.release(kept.table, kept.blocks);
  } else {
    pool_.release_blank(kept.blocks);
  }
  kept_.erase(found);
  stalled_ = false;
  return !waiting_.empty() || !skipped_.empty();
}

bool BatchPolicy::release_kv(Ticket) {
  throw std::logic_error("this policy keeps no KV for others");
}

void BatchPolicy::kv_arrived(Ticket) {
  throw std::logic_error("this policy takes no KV from others");
}

void BatchPolicy::kv_failed(Ticket) {
  throw std::logic_error("this policy takes no KV from others");
}

SequenceOutcome BatchPolicy::abort(Ticket) {
  throw std::logic_error("this policy cannot abort requests");
}

}  // namespace servesim
