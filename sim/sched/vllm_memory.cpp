// KV memory: what is taken from the block pool and given back, what the blocks hold, how they are
// used; contiguous regions, the swap space and the offload tiers.
#include <algorithm>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

bool VllmScheduler::allocate(SeqId id, std::int64_t tokens) {
  Sequence& s = store_[id];
  const std::int64_t end =
      std::min(s.computed + tokens + config_.lookahead(), config_.max_model_len);
  const std::int64_t blocks = std::max<std::int64_t>(blocks_for(end) - s.blocks, 0);
  if (blocks > pool_.free()) return false;
  if (has_regions() && end > regions_->size(id) && !grow_region(id, end)) return false;
  take_blocks(id, blocks, std::min(s.computed + tokens, s.num_tokens()));
  return true;
}

void VllmScheduler::take_from_pool(std::int64_t blocks) {
  pool_.take(blocks);
  held_ += blocks;
  slack_ += blocks * config_.block_size;
}

void VllmScheduler::give_back_to_pool(std::int64_t blocks) {
  pool_.release_blank(blocks);
  held_ -= blocks;
  slack_ -= blocks * config_.block_size;
}

void VllmScheduler::take_blocks(SeqId id, std::int64_t blocks, std::int64_t registered_tokens) {
  take_from_pool(blocks);
  store_[id].blocks += blocks;
  if (BlockTable* table = table_of(id)) {
    pool_.register_blocks(*table, block_size_.full(registered_tokens));
  }
}

void VllmScheduler::release(SeqId id) {
  Sequence& s = store_[id];
  slack_ -= empty_slots(s.blocks, s.computed);
  held_ -= s.blocks;
  if (stalls()) promised_ -= last_blocks(s);
  if (has_regions()) regions_->release(id);
  if (BlockTable* table = table_of(id)) {
    pool_.release(*table, s.blocks);
  } else {
    pool_.release_blank(s.blocks);
  }
  s.blocks = 0;
}

/// Slots that `s` needs in the end: the KV of its last token is never computed.
std::int64_t VllmScheduler::last_slots(const Sequence& s) const {
  const std::int64_t drafts = config_.speculative.num_speculative_tokens + config_.lookahead();
  return std::min(s.prompt + s.target - 1 + drafts, config_.max_model_len);
}

void VllmScheduler::open_content(SeqId id, const NewSequence& sequence) {
  if (tables_.size() <= id) tables_.resize(id + 1);
  Sequence& s = store_[id];
  s.session = sequence.session;
  sessions_.open(pool_.contents(), {s.prompt, sequence.hash_block, sequence.hash_ids, s.session},
                 tables_[id].path);
}

void VllmScheduler::close_content(SeqId id) {
  const Sequence& s = store_[id];
  sessions_.close(pool_.contents(), s.session, s.num_tokens(), tables_[id].path);
}

KvUsage VllmScheduler::kv_usage() {
  fill_in_kv_usage();
  return plan_.kv;
}

/// Field by field: a struct that is returned and copied in whole waits for the stores of its parts.
void VllmScheduler::fill_in_kv_usage() {
  KvUsage& kv = plan_.kv;
  kv.allocated = pool_.used() * config_.block_size;
  kv.internal = slack_;
  kv.reserved = awaited_slots_;
  kv.external = 0;
  if (has_regions() || speculates()) divide_reserved_kv();
}

/// What is held for tokens that have not come, apart from what is not yet filled.
void VllmScheduler::divide_reserved_kv() {
  KvUsage& kv = plan_.kv;
  if (has_regions()) {
    kv.allocated = regions_->space().used();
    kv.internal = 0;
    kv.reserved = kv.allocated - pool_.used();
    kv.external = regions_->external();
  } else {
    const std::int64_t reserved = reserved_tokens();
    kv.internal -= reserved;
    kv.reserved += reserved;
  }
}

std::int64_t VllmScheduler::reserved_tokens() const {
  std::int64_t blocks = 0;
  for (SeqId id = running_.head(); id != kNoSeq; id = store_[id].after) {
    blocks += store_[id].blocks - blocks_for(store_[id].computed);
  }
  return blocks * config_.block_size;
}

/// A region for all that is known of `id`, or, where nobody may be preempted, for its end.
bool VllmScheduler::place_region(SeqId id) {
  const Sequence& s = store_[id];
  const bool to_the_end = stalls();
  return regions_->place(id, to_the_end ? last_slots(s) : s.num_tokens(), last_slots(s));
}

bool VllmScheduler::outgrows_region(SeqId id, std::int64_t tokens) const {
  return tokens > 0 && store_[id].computed + tokens > regions_->size(id);
}

bool VllmScheduler::grow_region(SeqId id, std::int64_t end) {
  if (!regions_->grow(id, end, last_slots(store_[id]))) return false;
  copied_ += store_[id].computed;
  return true;
}

/// Copies the blocks of a victim to the host if there is room for them. The copy follows the steps
/// in flight, so their KV goes with it.
void VllmScheduler::swap_out(Sequence& s) {
  const std::int64_t blocks = blocks_for(s.computed);
  if (swap_used_ + blocks > config_.swap_blocks) return;
  swap_used_ += blocks;
  s.swapped = s.computed;
  moved_out_ += blocks * config_.block_size;
}

void VllmScheduler::drop_swapped(Sequence& s) {
  swap_used_ -= blocks_for(s.swapped);
  s.swapped = 0;
}

/// Tokens of `id` that HBM and the tiers hold, where loading is worth it: it takes less time than
/// computing would.
std::int64_t VllmScheduler::match_tiers(SeqId id, std::int64_t cached) {
  const std::int64_t limit = block_size_.full(store_[id].num_tokens() - 1);
  tiers_->match(tables_[id].path, block_size_, match_.blocks, limit, offloaded_);
  const std::int64_t tokens = offloaded_.blocks * config_.block_size;
  if (tokens == 0) return cached;
  const bool worth_it =
      !config_.prefill_seconds || offloaded_.load_s < config_.prefill_seconds(tokens, cached);
  return worth_it ? cached + tokens : cached;
}

/// Notes the tokens beyond the `cached` ones that an admission brings into HBM: they fill slots of
/// the blocks it takes.
void VllmScheduler::bring_in(Sequence& s, std::int64_t cached, std::int64_t hit) {
  fill_slots(cached, hit);
  if (rarely(s.swapped > 0)) {
    moved_in_ += (blocks_for(hit) - match_.blocks) * config_.block_size;
    drop_swapped(s);
  } else if (has_tiers() && hit > cached) {
    tiers_->use(offloaded_);
    load_s_ += offloaded_.load_s;
  } else if (has_tiers()) {
    tiers_->decline(offloaded_);
  }
}

/// The time that this step's moves take: the host link carries both directions at once, a copy
/// within HBM reads and writes.
void VllmScheduler::price_moves() {
  plan_.transfer = SimTime(0);
  if (mostly(moved_in_ + moved_out_ + copied_ == 0 && load_s_ == 0)) return;
  counters_.swapped_tokens += moved_in_ + moved_out_;
  counters_.copied_tokens += copied_;
  plan_.transfer =
      SimTime::from_seconds(config_.moves.host_seconds(std::max(moved_in_, moved_out_)) +
                            config_.moves.copy_seconds(copied_) + load_s_);
  load_s_ = 0;
  moved_in_ = moved_out_ = copied_ = 0;
}

}  // namespace servesim
