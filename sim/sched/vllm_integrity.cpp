// The sums that the scheduler keeps, against what they sum up.
#include <stdexcept>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

void VllmScheduler::check_integrity() const {
  pool_.check_integrity();
  if (regions_) regions_->space().check_integrity();
  if (tiers_) tiers_->check_integrity();
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
  };
  std::int64_t members = 0;
  std::int64_t group_slots = 0;
  std::int64_t members_of_lanes = 0, slots_of_lanes = 0;
  std::int64_t slack = 0;
  std::int64_t held = 0;
  std::int64_t promised = 0;
  for (SeqId id = running_.head(); id != kNoSeq; id = store_[id].after) {
    const Sequence& s = store_[id];
    const std::int64_t computed = s.grouped ? s.group_base + lanes_[s.lane].step : s.computed;
    const std::int64_t blocks = s.grouped ? blocks_for(computed) : s.blocks;
    require(s.status == SequenceStatus::kRunning, "a sequence on the running list does not run");
    const std::int64_t empty = empty_slots(blocks, computed);
    require(empty >= 0, "computed tokens without a slot");
    members += s.grouped ? 1 : 0;
    group_slots += s.grouped ? s.growth : 0;
    slack += empty;
    held += blocks;
    promised += last_blocks(s);
    require(!regions_ || computed <= regions_->size(id), "a sequence is larger than its region");
  }
  for (const auto& [ticket, kept] : kept_) {
    slack += empty_slots(kept.blocks, kept.computed);
    held += kept.blocks;
  }
  skipped_.for_each([&](SeqId id) {
    if (!store_[id].kv_loaded) return;
    slack += empty_slots(store_[id].blocks, store_[id].computed);
    held += store_[id].blocks;
  });
  for (const auto& [ticket, id] : awaiting_) held += store_[id].blocks;
  require(held == held_, "the blocks that are held are miscounted");
  require(config_.preemption_mode != PreemptionMode::kStall || promised == promised_,
          "the blocks that are promised are miscounted");
  for (const DecodeLane& lane : lanes_) {
    members_of_lanes += lane.group.count();
    slots_of_lanes += lane.group.slots();
  }
  require(members == members_of_lanes, "the decode groups miscount their members");
  require(group_slots == slots_of_lanes, "the decode groups miscount the slots they fill");
  require(members + static_cast<std::int64_t>(specials_.size()) == running_.size(),
          "a running sequence is neither in the group nor special");
  require(slack == slack_, "the slots that hold no token are miscounted");
  require(pool_.caching() ? held >= pool_.used() : held == pool_.used(),
          "blocks held and used differ");
  const auto awaiting = static_cast<std::int64_t>(awaiting_.size());
  require(running_.size() + waiting_.size() + skipped_.size() + awaiting == store_.live(),
          "a sequence is lost");
  require(held > 0 || pool_.used() == 0, "blocks are in use and nobody holds them");
}

}  // namespace servesim
