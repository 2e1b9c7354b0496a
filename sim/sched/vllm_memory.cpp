// KV memory beyond the block pool: contiguous regions, the swap space and the offload tiers.
#include <algorithm>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

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
