/// The order in which requests wait.
#include "sched/waiting_queue.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

std::vector<SeqId> drain(WaitingQueue& queue) {
  std::vector<SeqId> order;
  while (!queue.empty()) {
    order.push_back(queue.front());
    queue.remove(queue.front());
  }
  return order;
}

}  // namespace

TEST_CASE("FCFS is a deque") {
  SequenceStore store;
  std::vector<std::string> ids;
  WaitingQueue queue(SchedulingPolicy::kFcfs, store, ids);
  const SeqId a = store.create();
  const SeqId b = store.create();
  const SeqId c = store.create();
  queue.push_back(a);
  queue.push_back(b);
  queue.push_front(c);
  CHECK(queue.size() == 3);
  CHECK(drain(queue) == std::vector<SeqId>{c, a, b});
}

TEST_CASE("PRIORITY goes by priority, arrival and id as a string; in front is a normal insertion") {
  SequenceStore store;
  std::vector<std::string> ids{"q10", "q9", "q1", "q0"};
  WaitingQueue queue(SchedulingPolicy::kPriority, store, ids);
  for (int i = 0; i < 4; ++i) store.create();
  store[2].priority = -1;
  store[3].arrival = SimTime(5);
  for (const SeqId id : {1U, 3U, 0U}) queue.push_back(id);
  queue.push_front(2);
  CHECK(drain(queue) == std::vector<SeqId>{2, 0, 1, 3});
}
