#include "study/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "report/derived.hpp"

namespace servesim {
namespace {

constexpr double kTie = 0.005;

/// A figure that can be compared, and how to take it.
struct MetricKind {
  const char* key;
  const char* title;
  bool lower_is_better;
  std::function<std::optional<double>(const RunResult&)> value;
};

std::optional<double> present(const SampleSummary& sample, double value) {
  return sample.count > 0 ? std::optional(value) : std::nullopt;
}

const std::vector<MetricKind>& metric_kinds() {
  using R = const RunResult&;
  static const std::vector<MetricKind> kAll{
      {"request_goodput", "goodput, requests/s", false,
       [](R r) {
         return r.metrics.has_goodput ? std::optional(throughput_of(r.metrics).good_per_s)
                                      : std::nullopt;
       }},
      {"mean_e2el_ms", "mean E2E, ms", true,
       [](R r) { return present(r.metrics.e2el_ms, r.metrics.e2el_ms.mean); }},
      {"p99_e2el_ms", "p99 E2E, ms", true,
       [](R r) { return present(r.metrics.e2el_ms, r.metrics.e2el_ms.p99); }},
      {"mean_ttft_ms", "mean TTFT, ms", true,
       [](R r) { return present(r.metrics.ttft_ms, r.metrics.ttft_ms.mean); }},
      {"p99_ttft_ms", "p99 TTFT, ms", true,
       [](R r) { return present(r.metrics.ttft_ms, r.metrics.ttft_ms.p99); }},
      {"mean_tpot_ms", "mean TPOT, ms", true,
       [](R r) { return present(r.metrics.tpot_ms, r.metrics.tpot_ms.mean); }},
      {"p99_itl_ms", "p99 ITL, ms", true,
       [](R r) { return present(r.metrics.itl_ms, r.metrics.itl_ms.p99); }},
      {"output_throughput", "output tokens/s", false,
       [](R r) { return std::optional(throughput_of(r.metrics).output_tokens_per_s); }},
      {"usd_per_million_output_tokens", "$ per million output tokens", true,
       [](R r) { return r.gpu_hour_cost ? cost_of(r).per_million_output_tokens : std::nullopt; }},
  };
  return kAll;
}

std::string joined(const NamedValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    if (!text.empty()) text += ", ";
    const bool plain = name == "policy" || name == "kv" || name == "model" || name == "hardware";
    text += plain ? value : fmt::format("{} {}", name, value);
  }
  return text;
}

/// Where `value` stands in `list`, at whose end it is put if it is not there.
template <typename T, typename Same>
std::size_t place(std::vector<T>& list, T value, const Same& same) {
  const auto found = std::find_if(list.begin(), list.end(), same);
  if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
  list.push_back(std::move(value));
  return list.size() - 1;
}

/// Runs by workload and alternative.
using Grid = std::vector<std::vector<const ComparedRun*>>;

Grid lay_out(const std::vector<ComparedRun>& runs, Comparison& comparison) {
  std::vector<std::string> paths;
  std::vector<std::array<std::size_t, 2>> places;
  for (const ComparedRun& run : runs) {
    std::size_t workload = 0;
    while (workload < paths.size() && !(paths[workload] == run.trace_path &&
                                        comparison.workloads[workload].load == run.load)) {
      ++workload;
    }
    if (workload == paths.size()) {
      paths.push_back(run.trace_path);
      comparison.workloads.push_back({"", run.result->trace, run.load});
    }
    const std::size_t alternative =
        place(comparison.alternatives, {joined(run.settings), run.settings},
              [&run](const auto& other) { return other.settings == run.settings; });
    places.push_back({workload, alternative});
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Comparison::Workload& workload = comparison.workloads[i];
    const auto shares_label = [&](const std::string& path) {
      const auto at = static_cast<std::size_t>(&path - paths.data());
      return comparison.workloads[at].trace == workload.trace && path != paths[i];
    };
    if (std::any_of(paths.begin(), paths.end(), shares_label)) workload.trace = paths[i];
  }
  const bool one_trace = std::all_of(paths.begin(), paths.end(),
                                     [&paths](const auto& path) { return path == paths.front(); });
  for (Comparison::Workload& workload : comparison.workloads) {
    const std::string load = joined(workload.load);
    workload.name = one_trace && !load.empty() ? load : workload.trace;
    if (!one_trace && !load.empty()) workload.name += ", " + load;
  }
  Grid grid(paths.size(), std::vector<const ComparedRun*>(comparison.alternatives.size()));
  for (std::size_t i = 0; i < runs.size(); ++i) grid[places[i][0]][places[i][1]] = &runs[i];
  return grid;
}

void take_metrics(const Grid& grid, Comparison& comparison) {
  for (const MetricKind& kind : metric_kinds()) {
    ComparedMetric metric{kind.key, kind.title, kind.lower_is_better, {}};
    bool any = false;
    for (const auto& row : grid) {
      std::vector<std::optional<double>>& values = metric.values.emplace_back();
      for (const ComparedRun* run : row) {
        values.push_back(run == nullptr ? std::nullopt : kind.value(*run->result));
        any = any || values.back();
      }
    }
    if (any) comparison.metrics.push_back(std::move(metric));
  }
}

void pair_requests(const Grid& grid, Comparison& comparison) {
  for (std::size_t workload = 0; workload < grid.size(); ++workload) {
    const ComparedRun* base = grid[workload][0];
    for (std::size_t other = 1; other < grid[workload].size(); ++other) {
      const ComparedRun* run = grid[workload][other];
      if (base == nullptr || run == nullptr || !base->columns || !run->columns) continue;
      const RequestColumns& a = *base->columns;
      const RequestColumns& b = *run->columns;
      const auto add = [&](const char* name, const auto& left, const auto& right) {
        comparison.paired.push_back({workload, 0, other, name, paired_difference(left, right)});
      };
      add("ttft_ms", a.ttft_ms(), b.ttft_ms());
      add("tpot_ms", a.tpot_ms(), b.tpot_ms());
      add("e2el_ms", a.e2el_ms(), b.e2el_ms());
    }
  }
}

}  // namespace

std::vector<std::size_t> ComparedMetric::winners(std::size_t workload) const {
  std::optional<double> best;
  for (const std::optional<double>& value : values[workload]) {
    if (value && (!best || (lower_is_better ? *value < *best : *value > *best))) best = value;
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < values[workload].size(); ++i) {
    const std::optional<double>& value = values[workload][i];
    if (value && std::abs(*value - *best) <= kTie * std::abs(*best)) all.push_back(i);
  }
  return all;
}

std::optional<Comparison> compare(const std::vector<ComparedRun>& runs) {
  Comparison comparison;
  const Grid grid = lay_out(runs, comparison);
  if (comparison.alternatives.size() < 2) return std::nullopt;
  take_metrics(grid, comparison);
  pair_requests(grid, comparison);
  comparison.verdict = verdict_of(comparison);
  return comparison;
}

}  // namespace servesim
