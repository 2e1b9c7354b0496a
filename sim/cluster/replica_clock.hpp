/// Which replica acts next, and when.
#pragma once

#include <span>
#include <vector>

#include "core/event_queue.hpp"

namespace servesim {

/// One event per replica, on the global event queue, and one for each other actor behind them. A
/// single replica needs no queue.
class ReplicaClock {
 public:
  /// `others`: what the others are, which decides who is first among those due at the same instant.
  explicit ReplicaClock(std::size_t replicas, std::span<const EventClass> others = {}) {
    if (replicas + others.size() < 2) return;
    for (std::size_t i = 0; i < replicas + others.size(); ++i) {
      const EventClass kind = i < replicas ? EventClass::kStep : others[i - replicas];
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
      set_of_many(actor, time);
    }
  }

 private:
  [[gnu::noinline]] void set_of_many(std::size_t actor, SimTime time) {
    queue_.move(events_[actor], time);
  }

  using Queue = EventQueue<std::uint32_t>;

  SimTime only_ = SimTime::max();
  Queue queue_;
  std::vector<Queue::Handle> events_;
};

}  // namespace servesim
