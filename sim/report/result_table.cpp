#include "report/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "report/derived.hpp"

namespace servesim {
namespace {

enum class Better { kNeither, kLower, kHigher };

/// One figure of the table: how it is named, taken from a run and compared.
struct Figure {
  std::string group, name;
  Better better;
  int expendable;
  std::function<std::optional<double>(const RunResult&)> value;
  std::function<std::string(double)> format = short_number;
};

std::optional<double> if_any(const SampleSummary& d, double value) {
  return d.count > 0 ? std::optional(value) : std::nullopt;
}

std::string percent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}
std::string count(double value) {
  return with_thousands(std::llround(value));
}

std::vector<Figure> outcome_figures() {
  return {
      {"requests", "done", Better::kNeither, 0,
       [](const RunResult& r) { return static_cast<double>(r.metrics.completed); }, count},
      {"throughput", "req/s", Better::kHigher, 0,
       [](const RunResult& r) { return throughput_of(r.metrics).requests_per_s; }},
      {"throughput", "out tok/s", Better::kHigher, 0,
       [](const RunResult& r) { return throughput_of(r.metrics).output_tokens_per_s; }},
  };
}

std::vector<Figure> latency_figures() {
  return {
      {"TTFT ms", "mean", Better::kLower, 0,
       [](const RunResult& r) { return if_any(r.metrics.ttft_ms, r.metrics.ttft_ms.mean); }},
      {"TTFT ms", "p99", Better::kLower, 2,
       [](const RunResult& r) { return if_any(r.metrics.ttft_ms, r.metrics.ttft_ms.p99); }},
      {"TPOT ms", "mean", Better::kLower, 0,
       [](const RunResult& r) { return if_any(r.metrics.tpot_ms, r.metrics.tpot_ms.mean); }},
      {"TPOT ms", "p99", Better::kLower, 5,
       [](const RunResult& r) { return if_any(r.metrics.tpot_ms, r.metrics.tpot_ms.p99); }},
      {"ITL ms", "p99", Better::kLower, 0,
       [](const RunResult& r) { return if_any(r.metrics.itl_ms, r.metrics.itl_ms.p99); }},
      {"E2E s", "mean", Better::kLower, 3,
       [](const RunResult& r) { return if_any(r.metrics.e2el_ms, r.metrics.e2el_ms.mean / 1000); }},
      {"E2E s", "p99", Better::kLower, 6,
       [](const RunResult& r) { return if_any(r.metrics.e2el_ms, r.metrics.e2el_ms.p99 / 1000); }},
  };
}

std::vector<Figure> engine_figures() {
  return {
      {"engine", "batch", Better::kNeither, 7,
       [](const RunResult& r) { return engine_rates_of(r).mean_batch_size; }},
      {"KV pool", "peak", Better::kNeither, 1,
       [](const RunResult& r) { return kv_peak_allocated(kv_pool_of(r)); }, percent},
      {"KV pool", "used", Better::kNeither, 8,
       [](const RunResult& r) { return kv_shares_of(kv_pool_of(r)).used; }, percent},
      {"KV pool", "waste", Better::kNeither, 9,
       [](const RunResult& r) {
         const KvShares shares = kv_shares_of(kv_pool_of(r));
         return shares.internal + shares.reserved + shares.external;
       },
       percent},
      {"", "preempted", Better::kNeither, 4,
       [](const RunResult& r) { return static_cast<double>(r.engine.preemptions); }, count},
  };
}

std::vector<Figure> transfer_figures() {
  const auto split = [](const RunResult& r, double value) {
    return r.pools.empty() ? std::nullopt : std::optional(value);
  };
  return {
      {"KV wait", "ms", Better::kLower, 2,
       [split](const RunResult& r) { return split(r, transfer_figures_of(r).mean_wait_ms); }},
      {"link", "busiest", Better::kNeither, 3,
       [split](const RunResult& r) { return split(r, transfer_figures_of(r).busiest_share); },
       percent},
  };
}

/// The figures worth a column for these runs.
std::vector<Figure> figures_for(const std::vector<ResultRow>& rows) {
  const auto any = [&rows](auto predicate) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const ResultRow& row) { return predicate(row.result->metrics); });
  };
  std::vector<Figure> figures = outcome_figures();
  if (any([](const Metrics& m) { return m.rejected > 0; })) {
    figures.insert(
        figures.begin() + 1,
        {"requests", "rejected", Better::kNeither, 0,
         [](const RunResult& r) { return static_cast<double>(r.metrics.rejected); }, count});
  }
  if (any([](const Metrics& m) { return m.has_goodput; })) {
    figures.push_back({"goodput", "req/s", Better::kHigher, 0,
                       [](const RunResult& r) { return throughput_of(r.metrics).good_per_s; }});
  }
  for (Figure& figure : latency_figures()) figures.push_back(std::move(figure));
  if (std::any_of(rows.begin(), rows.end(),
                  [](const ResultRow& row) { return row.result->gpu_hour_cost.has_value(); })) {
    figures.push_back({"cost", "$/Mtok out", Better::kLower, 0, [](const RunResult& r) {
                         return r.gpu_hour_cost ? cost_of(r).per_million_output_tokens
                                                : std::nullopt;
                       }});
  }
  for (Figure& figure : engine_figures()) figures.push_back(std::move(figure));
  const bool split = std::any_of(rows.begin(), rows.end(),
                                 [](const ResultRow& row) { return !row.result->pools.empty(); });
  if (split) {
    for (Figure& figure : transfer_figures()) figures.push_back(std::move(figure));
  }
  return figures;
}

/// Whether row `at` has the best value of `figure` among the runs of the same trace, of which there
/// must be two that differ.
bool is_best(const Figure& figure, const std::vector<ResultRow>& rows, std::size_t at) {
  if (figure.better == Better::kNeither) return false;
  const std::optional<double> mine = figure.value(*rows[at].result);
  if (!mine) return false;
  bool differs = false;
  for (const ResultRow& row : rows) {
    const std::optional<double> other = figure.value(*row.result);
    if (row.result->trace != rows[at].result->trace || !other) continue;
    if (figure.format(*other) == figure.format(*mine)) continue;  // a tie, as far as one can see
    if (figure.better == Better::kLower ? *other < *mine : *other > *mine) return false;
    differs = true;
  }
  return differs;
}

std::vector<TextCell> cells_of(const std::vector<Figure>& figures,
                               const std::vector<ResultRow>& rows, std::size_t at) {
  const ResultRow& row = rows[at];
  std::vector<TextCell> cells{{row.result->trace}, {row.result->policy}};
  for (const auto& [name, value] : row.varied) cells.push_back({value});
  for (const Figure& figure : figures) {
    const std::optional<double> value = figure.value(*row.result);
    cells.push_back({value ? figure.format(*value) : "-", is_best(figure, rows, at)});
  }
  return cells;
}

std::string row_name(const ResultRow& row) {
  std::string name = fmt::format("{}, {}", row.result->trace, row.result->policy);
  for (const auto& [key, value] : row.varied) name += fmt::format(", {} {}", key, value);
  return name;
}

}  // namespace

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(digits.begin() + at, ',');
  }
  return digits;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 999.95) return with_thousands(std::llround(value));
  if (size >= 99.995) return fmt::format("{:.1f}", value);
  if (size >= 9.9995 || size == 0) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

// Each warning once, with the runs it holds for unless it holds for all.
std::string result_warnings(const std::vector<ResultRow>& rows, const TextStyle& style) {
  std::vector<std::pair<std::string, std::vector<std::string>>> warnings;
  for (const ResultRow& row : rows) {
    for (const std::string& warning : row.result->warnings) {
      auto found = std::find_if(warnings.begin(), warnings.end(),
                                [&](const auto& entry) { return entry.first == warning; });
      if (found == warnings.end()) found = warnings.insert(found, {warning, {}});
      found->second.push_back(row_name(row));
    }
  }
  constexpr std::size_t kNamesShown = 3;
  std::string text;
  for (const auto& [warning, names] : warnings) {
    text += paint(" ! ", kYellow, style);
    if (names.size() < rows.size()) {
      for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
        text += fmt::format("{}{}", i > 0 ? "; " : "", names[i]);
      }
      if (names.size() > kNamesShown) text += fmt::format("; {} more", names.size() - kNamesShown);
      text += ": ";
    }
    text += warning;
    text += '\n';
  }
  return text;
}

std::string result_table(const std::string& headline, const std::vector<ResultRow>& rows,
                         const TextStyle& style) {
  if (rows.empty()) return {};
  TextTable table;
  table.add_column("", "trace", false);
  table.add_column("", "policy", false);
  for (const auto& [name, value] : rows.front().varied) table.add_column("", name, false);
  const std::vector<Figure> figures = figures_for(rows);
  for (const Figure& figure : figures) {
    table.add_column(figure.group, figure.name, true, figure.expendable);
  }
  bool marked = false;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    std::vector<TextCell> cells = cells_of(figures, rows, at);
    for (const TextCell& cell : cells) marked = marked || cell.marked;
    table.add_row(std::move(cells));
  }
  std::string text =
      fmt::format("\n {}\n\n{}\n", paint(headline, kBold, style), table.render(style));
  if (marked) text += fmt::format("{}\n", paint(" * best of its trace", kDim, style));
  return text + result_warnings(rows, style);
}

}  // namespace servesim
