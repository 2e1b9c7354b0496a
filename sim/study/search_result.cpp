#include "study/search_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace servesim {
namespace {

double number_or(const nlohmann::ordered_json& metrics, const char* key, double fallback) {
  const auto found = metrics.find(key);
  return found != metrics.end() && found->is_number() ? found->get<double>() : fallback;
}

constexpr std::array kObjectives{Objective::kGoodputPerGpu, Objective::kGoodputPerDollar,
                                 Objective::kGoodput};

/// The configurations that no other beats in both figures.
std::vector<std::size_t> pareto_front(const std::vector<EvaluatedConfig>& all) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].has_answer()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&all](std::size_t a, std::size_t b) {
    const double left = all[a].throughput_per_gpu();
    const double right = all[b].throughput_per_gpu();
    return left != right ? left > right
                         : all[a].tokens_per_s_per_user() > all[b].tokens_per_s_per_user();
  });
  std::vector<std::size_t> front;
  double fastest = -1;
  for (const std::size_t at : order) {
    if (all[at].tokens_per_s_per_user() <= fastest) continue;
    fastest = all[at].tokens_per_s_per_user();
    front.push_back(at);
  }
  return front;
}

}  // namespace

std::string_view status_name(SearchStatus status) {
  constexpr std::array<std::string_view, 4> kNames{"met", "unbounded", "unmet", "infeasible"};
  return kNames[static_cast<std::size_t>(status)];
}

double EvaluatedConfig::attainment(const SloTarget& target) const {
  const std::int64_t counted = target.counted(trace);
  return counted > 0 ? static_cast<double>(misses.good) / static_cast<double>(counted) : 0.0;
}

double EvaluatedConfig::goodput() const {
  if (status == SearchStatus::kUnbounded) return number_or(metrics, "request_throughput", 0);
  const auto all = static_cast<double>(trace.requests);
  const auto servable = static_cast<double>(trace.requests - trace.unservable);
  return all > 0 ? rate * servable / all : 0;
}

double EvaluatedConfig::goodput_per_dollar() const {
  constexpr double kSecondsPerHour = 3600;
  return goodput_per_gpu() * kSecondsPerHour / gpu_hour_cost.value();
}

Cost EvaluatedConfig::cost() const {
  const double output = number_or(metrics, "total_output_tokens", 0);
  return cost_of(gpu_hour_cost.value(), gpus, number_or(metrics, "duration", 0), output,
                 output + number_or(metrics, "total_input_tokens", 0));
}

double EvaluatedConfig::throughput_per_gpu() const {
  return number_or(metrics, "output_throughput", 0) / static_cast<double>(gpus);
}

double EvaluatedConfig::tokens_per_s_per_user() const {
  const double tpot_ms = number_or(metrics, "mean_tpot_ms", 0);
  return tpot_ms > 0 ? 1000 / tpot_ms : 0.0;
}

double objective_value(const EvaluatedConfig& config, Objective objective) {
  switch (objective) {
    case Objective::kGoodputPerGpu:
      return config.goodput_per_gpu();
    case Objective::kGoodputPerDollar:
      return config.goodput_per_dollar();
    case Objective::kGoodput:
      break;
  }
  return config.goodput();
}

Objective parse_objective(const std::string& name) {
  std::vector<std::string> known;
  for (const Objective objective : kObjectives) {
    if (name == objective_name(objective)) return objective;
    known.emplace_back(objective_name(objective));
  }
  throw unknown_name("objective", name, known);
}

std::string_view objective_name(Objective objective) {
  switch (objective) {
    case Objective::kGoodputPerGpu:
      return "goodput-per-gpu";
    case Objective::kGoodputPerDollar:
      return "goodput-per-dollar";
    case Objective::kGoodput:
      break;
  }
  return "goodput";
}

void rank(SearchResult& result) {
  const std::vector<EvaluatedConfig>& all = result.evaluated;
  double highest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].has_answer()) continue;
    const double value = objective_value(all[i], result.settings.objective);
    if (result.best && value <= highest) continue;
    result.best = i;
    highest = value;
  }
  result.pareto = pareto_front(all);
}

std::string targets_text(const GoodputTargets& targets) {
  std::string text;
  for (const auto& [name, value] :
       {std::pair("ttft", targets.ttft_ms), std::pair("tpot", targets.tpot_ms),
        std::pair("e2el", targets.e2el_ms)}) {
    if (value) text += fmt::format("{}{}:{}", text.empty() ? "" : " ", name, *value);
  }
  return text;
}

}  // namespace servesim
