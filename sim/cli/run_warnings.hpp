/// What a user must know before trusting the numbers of a run.
#pragma once

#include <string>
#include <vector>

#include "cli/resolve.hpp"
#include "report/metrics.hpp"
#include "workload/trace_source.hpp"

namespace servesim {

std::vector<std::string> warnings_of(const ResolvedRun& run, const TraceSource& trace,
                                     const Metrics& metrics, const FaultStats& faults);

}  // namespace servesim
