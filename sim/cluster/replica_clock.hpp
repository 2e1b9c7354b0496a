/// Which replica acts next, and when.
#pragma once

#include <vector>

#include "core/event_queue.hpp"

namespace servesim {

/// One event per replica, on the global event queue. A single replica needs no queue.
class ReplicaClock {
 public:
  explicit ReplicaClock(std::size_t replicas) {
    for (std::size_t i = 0; i < replicas && replicas > 1; ++i) {
      events_.push_back(
          queue_.push(SimTime::max(), EventClass::kStep, static_cast<std::uint32_t>(i)));
    }
  }

  /// SimTime::max() while nobody has anything to do.
  SimTime time() const { return events_.empty() ? only_ : queue_.top().time; }
  /// The replica that acts at time().
  std::size_t replica() const { return events_.empty() ? 0 : queue_.top().payload; }

  void set(std::size_t replica, SimTime time) {
    if (events_.empty()) {
      only_ = time;
    } else {
      queue_.move(events_[replica], time);
    }
  }

 private:
  using Queue = EventQueue<std::uint32_t>;

  SimTime only_ = SimTime::max();
  Queue queue_;
  std::vector<Queue::Handle> events_;
};

}  // namespace servesim
