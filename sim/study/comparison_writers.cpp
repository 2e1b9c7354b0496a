#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/result_table.hpp"
#include "study/comparison.hpp"

namespace servesim {
namespace {

using Json = nlohmann::ordered_json;

Json named_json(const NamedValues& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

Json metric_json(const ComparedMetric& metric) {
  Json values = Json::array();
  Json winners = Json::array();
  for (std::size_t workload = 0; workload < metric.values.size(); ++workload) {
    Json row = Json::array();
    for (const std::optional<double>& value : metric.values[workload]) {
      row.push_back(value ? Json(*value) : Json(nullptr));
    }
    values.push_back(std::move(row));
    winners.push_back(metric.winners(workload));
  }
  return {{"name", metric.key},
          {"better", metric.lower_is_better ? "lower" : "higher"},
          {"values", std::move(values)},
          {"winners", std::move(winners)}};
}

Json paired_json(const PairedEntry& entry) {
  const PairedDifference& d = entry.difference;
  return {{"workload", entry.workload},
          {"base", entry.base},
          {"other", entry.other},
          {"metric", entry.metric},
          {"pairs", d.pairs},
          {"median_difference_ms", d.pairs > 0 ? Json(d.median_ms) : Json(nullptr)},
          {"share_improved", d.pairs > 0 ? Json(d.improved) : Json(nullptr)},
          {"share_worsened", d.pairs > 0 ? Json(d.worsened) : Json(nullptr)}};
}

std::string metric_table(const Comparison& comparison, const ComparedMetric& metric,
                         const TextStyle& style) {
  TextTable table;
  table.add_column("", "workload", false);
  for (const Comparison::Alternative& alternative : comparison.alternatives) {
    table.add_column(metric.title, alternative.name, true);
  }
  for (std::size_t workload = 0; workload < comparison.workloads.size(); ++workload) {
    const std::vector<std::size_t> winners = metric.winners(workload);
    const auto& values = metric.values[workload];
    std::vector<TextCell> cells{{comparison.workloads[workload].name}};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool won = winners.size() < values.size() &&
                       std::find(winners.begin(), winners.end(), i) != winners.end();
      cells.push_back({values[i] ? short_number(*values[i]) : "-", won});
    }
    table.add_row(std::move(cells));
  }
  return table.render(style);
}

std::string signed_ms(double value) {
  return value > 0 ? "+" + short_number(value) : short_number(value);
}

std::string paired_table(const Comparison& comparison, const TextStyle& style) {
  constexpr std::array kTitles{"TTFT", "TPOT", "E2E"};
  TextTable table;
  if (comparison.workloads.size() > 1) table.add_column("", "workload", false);
  table.add_column("", "alternative", false);
  for (const char* title : kTitles) {
    table.add_column(title, "median ms", true);
    table.add_column(title, "better", true);
  }
  for (std::size_t i = 0; i + kTitles.size() <= comparison.paired.size(); i += kTitles.size()) {
    const PairedEntry& first = comparison.paired[i];
    std::vector<TextCell> cells;
    if (comparison.workloads.size() > 1) {
      cells.push_back({comparison.workloads[first.workload].name});
    }
    cells.push_back({comparison.alternatives[first.other].name});
    for (std::size_t j = 0; j < kTitles.size(); ++j) {
      const PairedDifference& d = comparison.paired[i + j].difference;
      cells.push_back({d.pairs > 0 ? signed_ms(d.median_ms) : "-"});
      cells.push_back({d.pairs > 0 ? fmt::format("{:.0f}%", 100 * d.improved) : "-"});
    }
    table.add_row(std::move(cells));
  }
  return fmt::format(
      "{}\n{}\n",
      paint(fmt::format(" The same requests, against {}", comparison.alternatives[0].name), kBold,
            style),
      table.render(style));
}

}  // namespace

nlohmann::ordered_json comparison_json(const Comparison& comparison) {
  Json json;
  Json& workloads = json["workloads"] = Json::array();
  for (const auto& workload : comparison.workloads) {
    workloads.push_back({{"trace", workload.trace}, {"load", named_json(workload.load)}});
  }
  Json& alternatives = json["alternatives"] = Json::array();
  for (const auto& alternative : comparison.alternatives) {
    alternatives.push_back(named_json(alternative.settings));
  }
  Json& metrics = json["metrics"] = Json::array();
  for (const ComparedMetric& metric : comparison.metrics) metrics.push_back(metric_json(metric));
  Json& paired = json["paired"] = Json::array();
  for (const PairedEntry& entry : comparison.paired) paired.push_back(paired_json(entry));
  json["verdict"] = comparison.verdict;
  return json;
}

std::string metric_tables(const Comparison& comparison, const TextStyle& style) {
  std::string text;
  for (const ComparedMetric& metric : comparison.metrics) {
    text += metric_table(comparison, metric, style) + "\n";
  }
  return text;
}

std::string verdict_text(const Comparison& comparison, const TextStyle& style) {
  std::string text = "\n";
  if (!comparison.paired.empty()) text += paired_table(comparison, style);
  text += paint(" Verdict", kBold, style) + "\n";
  for (const std::string& line : comparison.verdict) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace servesim
