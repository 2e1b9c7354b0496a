/// The future event list: events in total order (time, class, sequence).
#pragma once

#include <boost/heap/d_ary_heap.hpp>
#include <cstdint>

#include "core/time.hpp"

namespace servesim {

/// What an event is, in the order in which events of the same instant happen.
enum class EventClass : std::uint8_t {
  kArrival,       ///< first: a request that arrives at t is seen by the schedule() that runs at t
  kTransferDone,  ///< KV that has landed may be used by the step that starts at t
  kStep,          ///< an engine acts: its step ends, it schedules the next
  kTimeout,       ///< last: work that finishes at its very deadline has met it
};

/// A priority queue whose entries can be moved or cancelled by handle. Boost's 4-ary heap: measured
/// faster than pairing and Fibonacci heaps for the few thousand entries of a large cluster.
template <typename Payload>
class EventQueue {
 public:
  struct Event {
    SimTime time;
    EventClass event_class;
    std::uint64_t sequence;
    Payload payload;
  };

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      if (a.time != b.time) return a.time > b.time;
      if (a.event_class != b.event_class) return a.event_class > b.event_class;
      return a.sequence > b.sequence;
    }
  };
  using Heap = boost::heap::d_ary_heap<Event, boost::heap::arity<4>, boost::heap::mutable_<true>,
                                       boost::heap::compare<Later>>;

 public:
  using Handle = typename Heap::handle_type;

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  /// REQUIRES: !empty().
  const Event& top() const { return heap_.top(); }
  void pop() { heap_.pop(); }

  /// Among equal (time, class), events happen in the order of their push or last move.
  Handle push(SimTime time, EventClass event_class, Payload payload) {
    return heap_.push(Event{time, event_class, sequence_++, payload});
  }
  void move(Handle handle, SimTime time) {
    Event event = *handle;
    event.time = time;
    event.sequence = sequence_++;
    heap_.update(handle, event);
  }
  void cancel(Handle handle) { heap_.erase(handle); }

 private:
  Heap heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace servesim
