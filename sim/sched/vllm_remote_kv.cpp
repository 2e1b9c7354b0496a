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
  if (blocks > pool_.free() - match_.evictable - watermark - blocks_promised()) return false;
  queue.remove(id);
  if (BlockTable* table = table_of(id); table != nullptr && match_.blocks > 0)
    pool_.touch(*table, match_);
  pool_.take(blocks);
  s.blocks = match_.blocks + blocks;
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
std::int64_t VllmScheduler::blocks_promised() const {
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
  awaiting_.erase(found);
  Sequence& s = store_[id];
  awaited_slots_ -= s.blocks * config_.block_size - s.computed;
  if (BlockTable* table = table_of(id)) {
    pool_.register_blocks(*table, block_size_.full(s.prompt));
  }
  s.computed = s.prompt - 1;  // the last token is computed again, to sample from it
  slack_ += s.blocks * config_.block_size - s.computed;
  s.status = SequenceStatus::kWaiting;
  s.kv_role = KvRole::kLocal;
  s.kv_loaded = true;
  s.skipped = true;
  skipped_.insert_loaded(id);
  stalled_ = false;
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
  slack_ -= kept.blocks * config_.block_size - kept.computed;
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

}  // namespace servesim
