/// Independent runs on several threads, with results in order.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cli/resolve.hpp"
#include "cli/trace_set.hpp"
#include "report/run_result.hpp"
#include "report/series_collector.hpp"
#include "study/request_columns.hpp"

namespace servesim {

class MetricsCollector;
class RequestWriter;
class ScheduleLogWriter;

/// Where a single run writes more than its result; each may be null.
struct RunTaps {
  Observer* observer = nullptr;
  ScheduleLogWriter* log = nullptr;
  Observer* timeline = nullptr;
  const SeriesDetail* series = nullptr;  ///< of any number of runs: collect RunResult::series
};

/// Carries out one run whose requests go to `metrics`, also through what it may be a part of.
RunResult run_with(const ResolvedRun& run, const TraceSource& trace, MetricsCollector& metrics,
                   RunControl& control);

/// Carries out one run.
RunResult run_one(const ResolvedRun& run, const TraceSource& trace, const RunTaps& taps,
                  RunControl& control);

/// Requests that `run` reads. REQUIRES: its trace was opened.
std::uint64_t requests_of(const ResolvedRun& run, const TraceSet& traces);

struct RunnerOptions {
  std::size_t threads = 1;
  bool progress = false;
  RunTaps taps;                                    ///< only with a single run, but for `series`
  std::vector<RequestColumns>* columns = nullptr;  ///< one per run, to be filled; may be null
};

/// What came of each run, in order; those that an interrupt kept from starting have no result.
struct RunnerOutcome {
  std::vector<std::optional<RunResult>> results;
  bool interrupted = false;
};

/// Carries out `runs`; results and errors do not depend on the number of threads. Throws the error
/// of the first run (in order) that has one.
RunnerOutcome run_all(const std::vector<ResolvedRun>& runs, const TraceSet& traces,
                      const RunnerOptions& options);

}  // namespace servesim
