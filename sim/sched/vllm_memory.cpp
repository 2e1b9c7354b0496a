// KV memory beyond the block pool: contiguous regions and the swap space.
#include <algorithm>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

/// A region for all that is known of `id`, or, where nobody may be preempted, for its end.
bool VllmScheduler::place_region(SeqId id) {
  const Sequence& s = store_[id];
  const bool to_the_end = config_.preemption_mode == PreemptionMode::kStall;
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

/// The time that this step's moves take: the host link carries both directions at once, a copy
/// within HBM reads and writes.
void VllmScheduler::price_moves() {
  plan_.transfer = SimTime(0);
  if (moved_in_ + moved_out_ + copied_ == 0) return;
  counters_.swapped_tokens += moved_in_ + moved_out_;
  counters_.copied_tokens += copied_;
  plan_.transfer =
      SimTime::from_seconds(config_.moves.host_seconds(std::max(moved_in_, moved_out_)) +
                            config_.moves.copy_seconds(copied_));
  moved_in_ = moved_out_ = copied_ = 0;
}

}  // namespace servesim
