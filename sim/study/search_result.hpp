/// What a search over configurations found.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/derived.hpp"
#include "study/slo_probe.hpp"

namespace servesim {

enum class SearchStatus {
  kMet,         ///< has a highest rate
  kUnbounded,   ///< meets the target even when all requests arrive at once
  kUnmet,       ///< does not meet it at any rate
  kInfeasible,  ///< cannot be run at all
};
std::string_view status_name(SearchStatus status);

/// One configuration of the space.
struct EvaluatedConfig {
  std::vector<std::pair<std::string, std::string>> varied;  ///< the settings that vary, by flag
  SearchStatus status = SearchStatus::kInfeasible;
  std::string reason;  ///< why it is infeasible or what binds it when it is unmet
  std::int64_t gpus = 0;
  std::int64_t runs = 0;  ///< simulated or found in the results database
  std::string rate_text;  ///< --request-rate of the run that `metrics` come from
  double rate = 0;        ///< kMet: the highest one
  TraceCount trace;
  SloMisses misses;                     ///< of that run
  nlohmann::json config;                ///< everything resolved; its request_rate is rate_text
  nlohmann::ordered_json metrics;       ///< of that run; null when kUnmet or kInfeasible
  std::optional<double> gpu_hour_cost;  ///< dollars

  bool has_answer() const {
    return status == SearchStatus::kMet || status == SearchStatus::kUnbounded;
  }
  /// Share of the counted requests that were good.
  double attainment(const SloTarget& target) const;
  /// Requests/s that are served within the target: the highest rate, less the share of it that no
  /// engine of this model can serve; what was completed per second when it is unbounded.
  double goodput() const;
  double goodput_per_gpu() const { return goodput() / static_cast<double>(gpus); }
  /// Requests per dollar at that rate. REQUIRES: gpu_hour_cost.
  double goodput_per_dollar() const;
  /// What the run of `metrics` cost. REQUIRES: gpu_hour_cost.
  Cost cost() const;
  /// Output tokens/s and GPU, and output tokens/s that one user sees (1/mean TPOT).
  double throughput_per_gpu() const;
  double tokens_per_s_per_user() const;
};

enum class Objective { kGoodputPerGpu, kGoodputPerDollar, kGoodput };
/// What `objective` ranks by; more is better. REQUIRES: config.has_answer().
double objective_value(const EvaluatedConfig& config, Objective objective);
Objective parse_objective(const std::string& name);
std::string_view objective_name(Objective objective);

struct SearchSettings {
  std::string trace;
  GoodputTargets targets;
  SloTarget target;
  double tolerance = 0.01;
  Objective objective = Objective::kGoodputPerGpu;
  std::uint64_t seed = 0;
};

struct SearchResult {
  SearchSettings settings;
  std::vector<EvaluatedConfig> evaluated;  ///< in the order of the space
  std::optional<std::size_t> best;         ///< none: nobody meets the target
  std::vector<std::size_t> pareto;         ///< by descending throughput per GPU
};

/// Fills in `best` and `pareto`. Ties go to the configuration that comes first in the space.
void rank(SearchResult& result);

/// "ttft:500 tpot:50".
std::string targets_text(const GoodputTargets& targets);

}  // namespace servesim
