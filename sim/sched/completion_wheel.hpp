/// Which members of the decode group leave it after which step: with their last token, or because
/// their KV region is full.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sched/sequence_store.hpp"

namespace servesim {

/// A timing wheel over step numbers (Varghese and Lauck, 1987): putting in and taking out cost
/// O(1), and the next completion is found through a bitmap of the slots in use. Steps further ahead
/// than one turn share a slot with nearer ones and are told apart by the member's own due_step.
class CompletionWheel {
 public:
  explicit CompletionWheel(SequenceStore& store)
      : store_(store), slots_(kSlots, kNoSeq), used_(kSlots / 64, 0) {}

  void put(SeqId id) {
    const std::size_t slot = slot_of(store_[id].due_step);
    link(slots_[slot], id);
    used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    next_ = std::min(next_, store_[id].due_step);
  }

  void take(SeqId id) {
    const std::size_t slot = slot_of(store_[id].due_step);
    Sequence& s = store_[id];
    (s.wheel_before == kNoSeq ? slots_[slot] : store_[s.wheel_before].wheel_after) = s.wheel_after;
    if (s.wheel_after != kNoSeq) store_[s.wheel_after].wheel_before = s.wheel_before;
    if (slots_[slot] == kNoSeq) used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    if (s.due_step == next_) next_ = kUnknown;
  }

  /// Some member that leaves after `step`, or kNoSeq.
  SeqId due(std::int64_t step) const {
    SeqId id = slots_[slot_of(step)];
    while (id != kNoSeq && store_[id].due_step != step) id = store_[id].wheel_after;
    return id;
  }

  /// The first step from `step` on at which a member is due, but at most `step + kSlots`.
  /// REQUIRES: none is due before `step`.
  std::int64_t next(std::int64_t step) {
    if (next_ < step) {
      const std::int64_t found = find_next(step);
      if (found == step + kSlots) return found;  // there may be one behind it
      next_ = found;
    }
    return std::min(next_, step + kSlots);
  }

 private:
  static constexpr std::int64_t kSlots = 4096;
  static constexpr std::int64_t kUnknown = -1;
  static std::size_t slot_of(std::int64_t step) {
    return static_cast<std::size_t>(step & (kSlots - 1));
  }

  std::int64_t find_next(std::int64_t step) const {
    for (std::int64_t at = step; at < step + kSlots;) {
      const std::size_t slot = slot_of(at);
      const std::uint64_t rest = used_[slot / 64] >> (slot % 64);
      if (rest == 0) {
        at += 64 - static_cast<std::int64_t>(slot % 64);
        continue;
      }
      at += std::countr_zero(rest);
      if (at < step + kSlots && due(at) != kNoSeq) return at;
      ++at;
    }
    return step + kSlots;
  }

  void link(SeqId& head, SeqId id) {
    store_[id].wheel_before = kNoSeq;
    store_[id].wheel_after = head;
    if (head != kNoSeq) store_[head].wheel_before = id;
    head = id;
  }

  SequenceStore& store_;
  std::vector<SeqId> slots_;  ///< heads of lists through the store
  std::vector<std::uint64_t> used_;
  std::int64_t next_ = kUnknown;  ///< the first step at which a member is due
};

}  // namespace servesim
