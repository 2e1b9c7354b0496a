#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "report/result_table.hpp"
#include "study/search_writers.hpp"

namespace servesim {
namespace {

constexpr std::size_t kRowsShown = 12;

double figure(const EvaluatedConfig& config, const char* name) {
  const auto found = config.metrics.find(name);
  return found != config.metrics.end() && found->is_number() ? found->get<double>() : 0.0;
}

/// The configurations to show: the best by the objective, then the rest of the Pareto front.
std::vector<std::size_t> shown_rows(const SearchResult& result) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < result.evaluated.size(); ++i) {
    if (result.evaluated[i].has_answer()) order.push_back(i);
  }
  const auto score = [&result](std::size_t at) {
    return objective_value(result.evaluated[at], result.settings.objective);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&score](std::size_t a, std::size_t b) { return score(a) > score(b); });
  const std::set<std::size_t> front(result.pareto.begin(), result.pareto.end());
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i < kRowsShown || front.contains(order[i])) rows.push_back(order[i]);
  }
  return rows;
}

TextTable make_columns(const SearchResult& result, bool has_cost) {
  TextTable table;
  for (const auto& [name, value] : result.evaluated.front().varied) {
    table.add_column("", name, false);
  }
  table.add_column("", "GPUs", true);
  table.add_column("highest rate", "req/s", true);
  table.add_column("highest rate", "per GPU", true);
  if (has_cost) table.add_column("", "$/Mtok out", true);
  table.add_column("", "attained", true, 4);
  table.add_column("TTFT ms", "p99", true, 2);
  table.add_column("TPOT ms", "mean", true, 3);
  table.add_column("TPOT ms", "p99", true, 2);
  table.add_column("output tokens/s", "per GPU", true, 1);
  table.add_column("output tokens/s", "per user", true, 1);
  table.add_column("", "Pareto", false, 1);
  return table;
}

std::string counts_line(const SearchResult& result) {
  std::array<std::size_t, 4> counts{};
  for (const EvaluatedConfig& config : result.evaluated) {
    ++counts[static_cast<std::size_t>(config.status)];
  }
  std::string line = fmt::format("{} configuration{}", result.evaluated.size(),
                                 result.evaluated.size() == 1 ? "" : "s");
  for (const SearchStatus status :
       {SearchStatus::kUnbounded, SearchStatus::kUnmet, SearchStatus::kInfeasible}) {
    const std::size_t count = counts[static_cast<std::size_t>(status)];
    if (count > 0) line += fmt::format(", {} {}", count, status_name(status));
  }
  return line;
}

/// What a reader must know about the best one.
std::vector<std::string> notes(const SearchResult& result) {
  std::vector<std::string> all;
  const EvaluatedConfig& best = result.evaluated[*result.best];
  if (best.status == SearchStatus::kUnbounded) {
    all.emplace_back(
        "the best configuration meets the target even when all requests arrive at once; the trace "
        "is too short to find its limit, and its rate is what it completed per second");
  }
  const auto saturated = best.metrics.find("saturated");
  if (saturated != best.metrics.end() && saturated->is_boolean() && saturated->get<bool>()) {
    all.emplace_back(
        "saturated: at that rate the queue still grew when the trace ended; a longer trace would "
        "give a lower rate");
  }
  if (best.trace.unservable > 0) {
    all.push_back(fmt::format(
        "{} of {} requests are longer than the model's context (or empty): no configuration can "
        "serve them, and they {} (--count-unservable)",
        with_thousands(best.trace.unservable), with_thousands(best.trace.requests),
        result.settings.target.count_unservable ? "count as misses"
                                                : "are left out of the attainment"));
  }
  return all;
}

}  // namespace

std::string search_table(const std::string& headline, const SearchResult& result,
                         const TextStyle& style) {
  const EvaluatedConfig& best = result.evaluated[*result.best];
  const bool has_cost = best.gpu_hour_cost.has_value();
  TextTable table = make_columns(result, has_cost);
  const std::vector<std::size_t> rows = shown_rows(result);
  for (const std::size_t at : rows) {
    const EvaluatedConfig& config = result.evaluated[at];
    const bool front =
        std::find(result.pareto.begin(), result.pareto.end(), at) != result.pareto.end();
    std::vector<TextCell> cells;
    for (const auto& [name, value] : config.varied) cells.push_back({value});
    cells.push_back({std::to_string(config.gpus)});
    cells.push_back({config.status == SearchStatus::kUnbounded ? "no limit" : config.rate_text,
                     at == *result.best});
    cells.push_back({short_number(config.goodput_per_gpu()), at == *result.best});
    if (has_cost)
      cells.push_back({short_number(config.cost().per_million_output_tokens.value_or(0))});
    cells.push_back({fmt::format("{:.2f}%", 100 * config.attainment(result.settings.target))});
    for (const char* name : {"p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms"}) {
      cells.push_back({short_number(figure(config, name))});
    }
    cells.push_back({short_number(config.throughput_per_gpu())});
    cells.push_back({short_number(config.tokens_per_s_per_user())});
    cells.push_back({front ? "front" : ""});
    table.add_row(std::move(cells));
  }
  const std::string target =
      fmt::format("{:.4g} % of requests within {} ms", 100 * result.settings.target.attainment,
                  targets_text(result.settings.targets));
  std::string text =
      fmt::format("\n {}\n {}\n\n{}\n", paint(headline, kBold, style),
                  paint(fmt::format("{}: {}", result.settings.trace, target), kBold, style),
                  table.render(style));
  text += paint(fmt::format(" * best by {}; {}; rates to within {:.4g} %",
                            objective_name(result.settings.objective), counts_line(result),
                            100 * result.settings.tolerance),
                kDim, style) +
          "\n";
  for (const std::string& note : notes(result)) {
    text += fmt::format("{}{}\n", paint(" ! ", kYellow, style), note);
  }
  return text;
}

}  // namespace servesim
