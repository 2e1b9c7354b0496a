#include "cli/run_warnings.hpp"

#include <fmt/format.h>

#include "report/result_table.hpp"

namespace servesim {
namespace {

std::string plural(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", with_thousands(n), noun, n == 1 ? "" : "s");
}

}  // namespace

std::vector<std::string> warnings_of(const ResolvedRun& run, const TraceSource& trace,
                                     const Metrics& metrics) {
  std::vector<std::string> warnings = run.warnings;
  if (trace.was_unsorted()) warnings.emplace_back("the trace was not in order of arrival: sorted");
  for (const auto& [reason, count] : metrics.rejections) {
    warnings.push_back(fmt::format("{} rejected: {}", plural(count, "request"), reason));
  }
  if (metrics.unfinished > 0) {
    warnings.push_back(fmt::format("{} unfinished: the run was interrupted",
                                   plural(metrics.unfinished, "request")));
  }
  if (metrics.saturated) {
    warnings.emplace_back(
        "saturated: the queue still grew when the trace ended, so latencies describe the length of "
        "the trace, not the system");
  }
  if (metrics.all_at_once && run.cluster.max_concurrency == 0) {
    warnings.emplace_back(
        "all requests arrive at once: throughput is that at saturation, TTFT and E2E include the "
        "wait for those before");
  }
  return warnings;
}

}  // namespace servesim
