/// Alternatives (policies, allocators, settings) against each other on the same workloads.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/run_result.hpp"
#include "report/text_table.hpp"
#include "study/request_columns.hpp"

namespace servesim {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// One run of a comparison.
struct ComparedRun {
  const RunResult* result;
  const RequestColumns* columns;  ///< null: not kept
  std::string trace_path;
  NamedValues load;      ///< what makes its workload, beside the trace
  NamedValues settings;  ///< what makes it an alternative
};

/// One figure of every run: values[workload][alternative].
struct ComparedMetric {
  std::string key;    ///< as in the result document
  std::string title;  ///< for people
  bool lower_is_better;
  std::vector<std::vector<std::optional<double>>> values;

  /// The best alternative of a workload; several within half a per cent are all best.
  std::vector<std::size_t> winners(std::size_t workload) const;
};

struct PairedEntry {
  std::size_t workload, base, other;  ///< alternatives
  std::string metric;                 ///< "ttft_ms", "tpot_ms", "e2el_ms"
  PairedDifference difference;
};

struct Comparison {
  struct Workload {
    std::string name, trace;
    NamedValues load;
  };
  struct Alternative {
    std::string name;
    NamedValues settings;
  };
  std::vector<Workload> workloads;
  std::vector<Alternative> alternatives;
  std::vector<ComparedMetric> metrics;
  std::vector<PairedEntry> paired;  ///< every alternative against the first
  std::vector<std::string> verdict;
};

/// Lays `runs` out by workload and alternative, pairs their requests and states a verdict. Nothing
/// when there are not two alternatives.
std::optional<Comparison> compare(const std::vector<ComparedRun>& runs);

/// Who wins, by how much, where it flips: from the metrics alone.
std::vector<std::string> verdict_of(const Comparison& comparison);

nlohmann::ordered_json comparison_json(const Comparison& comparison);

/// One table per metric, workloads by alternatives.
std::string metric_tables(const Comparison& comparison, const TextStyle& style);
/// The paired differences and the verdict.
std::string verdict_text(const Comparison& comparison, const TextStyle& style);

}  // namespace servesim
