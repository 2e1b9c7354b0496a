/// Turns plans and results into step logs and request outcomes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/oracle/scheduler.hpp"
#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// Collects the result of one run.
class Recorder {
 public:
  /// Starts with no step, and every request unfinished.
  explicit Recorder(const std::vector<Request>& requests);

  /// Notes that a request is refused on arrival.
  void reject(std::size_t request, const std::string& reason);

  /// Notes one step, decided at `start_ns`, whose results came at `done_ns`; throws
  /// NoProgress after far more steps than the trace can need.
  void add_step(const StepPlan& plan, const StepResults& results, std::int64_t start_ns,
                std::int64_t done_ns);

  /// The outcome of one request, to complete it.
  Outcome& outcome(std::size_t request) { return result_.outcomes.at(request); }

  /// The result; throws unless every request either completed with all its tokens or was rejected.
  Result finish(const Config& config);

 private:
  std::vector<std::string> ids(const std::vector<std::size_t>& indices) const;
  std::map<std::string, std::int64_t> by_id(const std::map<std::size_t, std::int64_t>& map) const;
  void note_outcomes(const StepPlan& plan, const StepResults& results, const LoggedStep& line);

  const std::vector<Request>& requests_;
  Result result_;
  std::size_t max_steps_ = 0;
};

/// The work of a step as the price sees it.
std::vector<ScheduledWork> work_of(const StepPlan& plan);

}  // namespace servesim::oracle
