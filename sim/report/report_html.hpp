/// The report: one HTML file that needs nothing else (--report).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/run_result.hpp"

namespace servesim {

/// One run of the report. `result.series` may be null: then it has figures, but no curves.
struct ReportRun {
  const RunResult* result;
  std::vector<std::pair<std::string, std::string>> varied;  ///< flags by which runs differ
};

/// A configuration that a search looked at.
struct ParetoPoint {
  std::string label;
  double x = 0, y = 0;
  bool on_front = false;
};

/// Two goals against each other; no points: not shown.
struct ParetoPlot {
  std::string answer;  ///< what was found, in a sentence
  std::string x_label, y_label;
  std::vector<ParetoPoint> points;
};

struct ReportInput {
  std::string command;
  std::uint64_t seed = 0;
  std::vector<ReportRun> runs;
  ParetoPlot pareto;
};

/// The file's text. The data in it (schema `servesim/report/v1`, docs/report.md) hold the runs as
/// `--json` writes them. Names from traces and flags are data to the page, never markup.
std::string report_html(const ReportInput& input);

}  // namespace servesim
