#include "cli/compare_runs.hpp"

#include <algorithm>
#include <numeric>

namespace servesim {
namespace {

/// Whether an axis makes another workload rather than another alternative.
bool is_load(const std::string& name) {
  if (name == "replicas" || name == "router" || name == "max-queue") return false;
  return std::any_of(axes().begin(), axes().end(), [&name](const Axis& axis) {
    return axis.name == name && axis.scope != Axis::Scope::kEngine;
  });
}

NamedValues alternative_of(const PlannedRun& planned) {
  NamedValues settings;
  if (planned.spec.policy) settings.emplace_back("policy", *planned.spec.policy);
  for (const auto& entry : planned.varied) {
    if (!is_load(entry.first)) settings.push_back(entry);
  }
  return settings;
}

}  // namespace

bool is_comparison(const std::vector<PlannedRun>& planned) {
  const NamedValues first = alternative_of(planned.front());
  return std::any_of(planned.begin(), planned.end(),
                     [&first](const PlannedRun& run) { return alternative_of(run) != first; });
}

std::vector<RequestColumns> make_columns(const std::vector<PlannedRun>& planned,
                                         const std::vector<std::uint64_t>& requests) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  const std::uint64_t all = std::accumulate(requests.begin(), requests.end(), std::uint64_t{0});
  if (!is_comparison(planned) || all > kMostBytes / RequestColumns::kBytesPerRequest) return {};
  return std::vector<RequestColumns>(planned.size());
}

std::optional<Comparison> compare_runs(const std::vector<PlannedRun>& planned,
                                       const std::vector<std::optional<RunResult>>& results,
                                       const std::vector<RequestColumns>& columns) {
  if (!is_comparison(planned)) return std::nullopt;
  const bool one_policy = std::all_of(planned.begin(), planned.end(), [&](const PlannedRun& run) {
    return run.spec.policy == planned.front().spec.policy;
  });
  std::vector<ComparedRun> runs;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (!results[i]) continue;
    ComparedRun run{&*results[i],
                    columns.empty() ? nullptr : &columns[i],
                    planned[i].spec.trace,
                    {},
                    alternative_of(planned[i])};
    for (const auto& entry : planned[i].varied) {
      if (is_load(entry.first)) run.load.push_back(entry);
    }
    if (one_policy && !run.settings.empty() && run.settings.front().first == "policy") {
      run.settings.erase(run.settings.begin());
    }
    runs.push_back(std::move(run));
  }
  return compare(runs);
}

bool prefers_metric_tables(const Comparison& comparison) {
  constexpr std::size_t kMostColumns = 8;
  return comparison.workloads.size() > 1 && comparison.alternatives.size() <= kMostColumns;
}

}  // namespace servesim
