/// Which replica acts next, and when.
#pragma once

#include <vector>

#include "core/event_queue.hpp"

namespace servesim {

/// One event per replica, on the global event queue, and one for each other actor behind them. A
/// single replica needs no queue.
class ReplicaClock {
 public:
  /// `others` act before replicas that are due at the same instant: KV that has landed may be used
  /// by the step that starts then.
  explicit ReplicaClock(std::size_t replicas, std::size_t others = 0) {
    if (replicas + others < 2) return;
    for (std::size_t i = 0; i < replicas + others; ++i) {
      const EventClass kind = i < replicas ? EventClass::kStep : EventClass::kTransferDone;
      events_.push_back(queue_.push(SimTime::max(), kind, static_cast<std::uint32_t>(i)));
    }
  }

  /// SimTime::max() while nobody has anything to do.
  SimTime time() const { return events_.empty() ? only_ : queue_.top().time; }
  /// The one that acts at time().
  std::size_t actor() const { return events_.empty() ? 0 : queue_.top().payload; }

  void set(std::size_t actor, SimTime time) {
    if (events_.empty()) {
      only_ = time;
    } else {
      queue_.move(events_[actor], time);
    }
  }

 private:
  using Queue = EventQueue<std::uint32_t>;

  SimTime only_ = SimTime::max();
  Queue queue_;
  std::vector<Queue::Handle> events_;
};

}  // namespace servesim
