/// Requests that wait to be admitted: first come first served, or by priority.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/branch_hints.hpp"
#include "sched/scheduler_config.hpp"
#include "sched/sequence_store.hpp"

namespace servesim {

/// The order of the PRIORITY queues: smaller (priority, arrival) first, then the id as a string.
class PriorityOrder {
 public:
  PriorityOrder(const SequenceStore& store, const std::vector<std::string>& ids)
      : store_(&store), ids_(&ids) {}
  bool operator()(SeqId a, SeqId b) const {
    const Sequence& x = (*store_)[a];
    const Sequence& y = (*store_)[b];
    if (x.priority != y.priority) return x.priority < y.priority;
    if (x.arrival != y.arrival) return x.arrival < y.arrival;
    if ((*ids_)[a] != (*ids_)[b]) return (*ids_)[a] < (*ids_)[b];
    return x.index < y.index;
  }

 private:
  const SequenceStore* store_;
  const std::vector<std::string>* ids_;
};

/// A deque under FCFS; under PRIORITY a sorted set, for which putting in front is a normal
/// insertion.
class WaitingQueue {
 public:
  WaitingQueue(SchedulingPolicy policy, SequenceStore& store, const std::vector<std::string>& ids)
      : by_priority_(policy == SchedulingPolicy::kPriority),
        store_(store),
        sorted_(PriorityOrder(store, ids)) {}

  bool empty() const { return size_ == 0; }
  std::int64_t size() const { return size_; }
  /// REQUIRES: !empty().
  SeqId front() const { return by_priority() ? *sorted_.begin() : fifo_.head(); }

  void push_back(SeqId id) {
    ++size_;
    if (by_priority()) {
      sorted_.insert(id);
    } else {
      fifo_.push_back(store_, id);
    }
  }
  void push_front(SeqId id) {
    ++size_;
    if (by_priority()) {
      sorted_.insert(id);
    } else {
      fifo_.push_front(store_, id);
    }
  }
  /// Puts a sequence whose KV has come where it would stand had it waited for it here.
  void insert_loaded(SeqId id) {
    ++size_;
    if (by_priority()) {
      sorted_.insert(id);
      return;
    }
    SeqId place = fifo_.head();
    while (place != kNoSeq && store_[place].kv_number < store_[id].kv_number)
      place = store_[place].after;
    fifo_.insert_before(store_, place, id);
  }
  /// Whether `id` was here and is no more. FCFS callers must know which queue it is on.
  bool remove(SeqId id) {
    if (by_priority() && sorted_.erase(id) == 0) return false;
    if (!by_priority()) fifo_.remove(store_, id);
    --size_;
    return true;
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    if (by_priority()) {
      for (const SeqId id : sorted_) visit(id);
    } else {
      for (SeqId id = fifo_.head(); id != kNoSeq; id = store_[id].after) visit(id);
    }
  }

 private:
  bool by_priority() const { return rarely(by_priority_); }

  bool by_priority_;
  SequenceStore& store_;
  SequenceList fifo_;
  std::set<SeqId, PriorityOrder> sorted_;
  std::int64_t size_ = 0;
};

}  // namespace servesim
