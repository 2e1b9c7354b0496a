/// Sequences of one engine: a slab with stable indices, and intrusive lists through it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sched/sequence.hpp"

namespace servesim {

enum class SequenceStatus : std::uint8_t { kWaiting, kPreempted, kRunning, kAwaitsKv };

/// The scheduler's view of a request; names follow section 1 of the scheduler semantics.
struct Sequence {
  Ticket ticket = 0;
  std::int32_t priority = 0;
  std::uint64_t index = 0;
  SimTime arrival;
  std::int64_t prompt = 0;
  std::int64_t target = 0;      ///< outputs at which generation stops
  std::int64_t max_tokens = 0;  ///< outputs asked for; `target` may be less at max_model_len

  // While the sequence is in the decode group these two follow from the step number and are not
  // kept here.
  std::int64_t computed = 0;  ///< tokens computed or being computed
  std::int64_t outputs = 0;   ///< tokens generated and processed

  std::int64_t group_base = 0;  ///< in the decode group: computed = group_base + steps so far
  std::int64_t last_step = 0;   ///< in the decode group: the lane's step that yields the last token
  std::int64_t due_step = 0;    ///< in the decode group: the one after which it leaves
  std::int64_t blocks = 0;      ///< held; in the decode group: what `computed` tokens take
  std::int64_t inflight = 0;    ///< tokens scheduled, not as a member, whose results are to come
  std::int64_t stale = 0;       ///< of a preempted sequence: tokens whose results are still to come
  std::int64_t placeholders = 0;  ///< asynchronous: outputs scheduled but not known
  std::int64_t drafts = 0;        ///< speculative tokens for the next step
  std::int64_t lost = 0;          ///< tokens computed when it was last preempted
  std::int64_t swapped = 0;       ///< tokens whose KV is in the swap space
  std::int64_t session = -1;      ///< see NewSequence
  std::uint32_t run_number = 0;   ///< order in the running list
  std::uint32_t kv_number = 0;    ///< order in which sequences began to wait for KV; 0: did not
  std::uint64_t generation = 0;   ///< tells this tenant of the slot from the next

  SequenceStatus status = SequenceStatus::kWaiting;
  KvRole kv_role = KvRole::kLocal;
  bool kv_loaded = false;  ///< came from elsewhere; its blocks are held while it waits
  bool skipped = false;    ///< waiting, but passed over: on the skipped queue
  bool grouped = false;
  bool prefill_chunk = false;  ///< its last step ended before the end of what is known of it
  bool has_first_token = false;
  bool decoding = false;  ///< scheduled by the running pass of the current step, not as a chunk

  std::uint32_t lane = 0;   ///< in the decode group: which lane's
  std::int32_t growth = 1;  ///< in the decode group: slots per token, blocks per full block
  std::int32_t preemptions = 0;
  std::int64_t prefix_hit_tokens = 0;
  SimTime scheduled, first_token, last_token;

  SeqId wheel_before = kNoSeq,
        wheel_after = kNoSeq;             ///< neighbours among the completions of a step
  SeqId before = kNoSeq, after = kNoSeq;  ///< neighbours in the list it is on

  std::int64_t num_tokens() const { return prompt + outputs; }
};

/// Slab of sequences.
class SequenceStore {
 public:
  Sequence& operator[](SeqId id) { return slots_[id]; }
  const Sequence& operator[](SeqId id) const { return slots_[id]; }

  SeqId create() {
    ++live_;
    if (!unused_.empty()) {
      const SeqId id = unused_.back();
      unused_.pop_back();
      const std::uint64_t generation = slots_[id].generation + 1;
      std::construct_at(&slots_[id])->generation = generation;
      return id;
    }
    slots_.emplace_back();
    return static_cast<SeqId>(slots_.size() - 1);
  }
  void destroy(SeqId id) {
    --live_;
    ++slots_[id].generation;
    unused_.push_back(id);
  }
  std::int64_t live() const { return live_; }

 private:
  std::vector<Sequence> slots_;
  std::vector<SeqId> unused_;
  std::int64_t live_ = 0;
};

/// A doubly linked list through the store. A sequence is on at most one list.
class SequenceList {
 public:
  SeqId head() const { return head_; }
  SeqId tail() const { return tail_; }
  bool empty() const { return head_ == kNoSeq; }
  std::int64_t size() const { return size_; }

  void push_back(SequenceStore& store, SeqId id) { link(store, id, tail_, kNoSeq); }
  void push_front(SequenceStore& store, SeqId id) { link(store, id, kNoSeq, head_); }
  /// Puts `id` before `place`, or at the end when that is kNoSeq.
  void insert_before(SequenceStore& store, SeqId place, SeqId id) {
    link(store, id, place == kNoSeq ? tail_ : store[place].before, place);
  }
  void remove(SequenceStore& store, SeqId id) {
    Sequence& s = store[id];
    (s.before == kNoSeq ? head_ : store[s.before].after) = s.after;
    (s.after == kNoSeq ? tail_ : store[s.after].before) = s.before;
    s.before = s.after = kNoSeq;
    --size_;
  }

 private:
  void link(SequenceStore& store, SeqId id, SeqId before, SeqId after) {
    store[id].before = before;
    store[id].after = after;
    (before == kNoSeq ? head_ : store[before].after) = id;
    (after == kNoSeq ? tail_ : store[after].before) = id;
    ++size_;
  }

  SeqId head_ = kNoSeq;
  SeqId tail_ = kNoSeq;
  std::int64_t size_ = 0;
};

}  // namespace servesim
