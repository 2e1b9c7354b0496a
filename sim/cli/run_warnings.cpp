#include "cli/run_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/result_table.hpp"

namespace servesim {
namespace {

std::string plural(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", with_thousands(n), noun, n == 1 ? "" : "s");
}

/// The first of the replicas that went down, and how many more did.
std::string downs_text(const std::vector<ScenarioEvent>& scenario, std::int64_t downs) {
  const auto first = std::find_if(scenario.begin(), scenario.end(), [](const ScenarioEvent& event) {
    return event.kind == ScenarioEvent::Kind::kReplicaDown;
  });
  const std::string others =
      downs > 1 ? fmt::format(", the first of {}", plural(downs, "such event")) : std::string();
  return fmt::format("replica {} goes down at {:.1f} s{}: `timeline` shows the dip", first->replica,
                     first->at.seconds(), others);
}

}  // namespace

std::vector<std::string> warnings_of(const ResolvedRun& run, const TraceSource& trace,
                                     const Metrics& metrics, const FaultStats& faults) {
  std::vector<std::string> warnings = run.warnings;
  if (trace.was_unsorted()) warnings.emplace_back("the trace was not in order of arrival: sorted");
  for (const auto& [reason, count] : metrics.rejections) {
    warnings.push_back(fmt::format("{} rejected: {}", plural(count, "request"), reason));
  }
  for (const auto& [reason, count] : metrics.unfinished_reasons) {
    warnings.push_back(fmt::format("{} unfinished: {}", plural(count, "request"), reason));
  }
  if (faults.downs > 0) warnings.push_back(downs_text(run.cluster.scenario, faults.downs));
  if (faults.failed_transfers > 0) {
    warnings.push_back(fmt::format("{} given up or lost: the decode replica computed the prompt",
                                   plural(faults.failed_transfers, "KV transfer")));
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
