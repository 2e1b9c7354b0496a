/// The runs of a command as a comparison of alternatives over workloads.
#pragma once

#include <optional>
#include <vector>

#include "cli/axes.hpp"
#include "cli/trace_set.hpp"
#include "report/run_result.hpp"
#include "study/comparison.hpp"

namespace servesim {

/// Whether `planned` holds at least two alternatives: settings other than those of the trace and
/// the load.
bool is_comparison(const std::vector<PlannedRun>& planned);

/// One column set per run, or none when they would take more than a gigabyte or nothing is
/// compared.
std::vector<RequestColumns> make_columns(const std::vector<PlannedRun>& planned,
                                         const std::vector<std::uint64_t>& requests);

/// The comparison of what has a result. `columns` is empty or holds one per run.
std::optional<Comparison> compare_runs(const std::vector<PlannedRun>& planned,
                                       const std::vector<std::optional<RunResult>>& results,
                                       const std::vector<RequestColumns>& columns);

/// Whether the tables by metric say it better than one row per run does: several workloads, and
/// not more alternatives than fit beside each other.
bool prefers_metric_tables(const Comparison& comparison);

}  // namespace servesim
