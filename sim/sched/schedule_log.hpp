/// A record of every decision, in the form of the recorded vLLM schedules.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/time.hpp"
#include "sched/sequence.hpp"

namespace servesim {

/// One step: what was decided at `time`, and what had come of it at `done`. Requests are named by
/// ticket.
struct LoggedStep {
  using Counts = std::vector<std::pair<Ticket, std::int64_t>>;
  std::int64_t step = 0;  ///< from 1
  SimTime time;
  Counts scheduled;  ///< in step order
  std::vector<Ticket> admitted, resumed, preempted;
  Counts prefix_hit_tokens;  ///< of admitted and resumed
  Counts drafts;
  std::int64_t free_blocks = 0;  ///< after the decision
  std::vector<Ticket> running, waiting;
  Counts tokens_out, accepted;
  std::vector<Ticket> finished;
  SimTime done;
  std::int64_t free_blocks_after = 0;  ///< after the results
};

/// Receives the steps in the order in which their results are processed.
class ScheduleLog {
 public:
  virtual ~ScheduleLog() = default;
  virtual void on_step(const LoggedStep& step) = 0;
};

}  // namespace servesim
