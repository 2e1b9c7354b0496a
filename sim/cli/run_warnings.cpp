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
  for (const auto& [reason, count] : metrics.unfinished_reasons) {
    warnings.push_back(fmt::format("{} unfinished: {}", plural(count, "request"), reason));
  }
  for (const ScenarioEvent& event : run.cluster.scenario) {
    if (event.kind != ScenarioEvent::Kind::kReplicaDown) continue;
    warnings.push_back(fmt::format("replica {} goes down at {:.1f} s: `timeline` shows the dip",
                                   event.replica, event.at.seconds()));
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
