/// Is the best the best, and the Pareto front what nobody beats?
#include <algorithm>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "study/search_result.hpp"
#include "study/search_writers.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

EvaluatedConfig config_with(double rate, std::int64_t gpus, double throughput, double tpot_ms) {
  EvaluatedConfig config;
  config.status = SearchStatus::kMet;
  config.rate = rate;
  config.rate_text = std::to_string(rate);
  config.gpus = gpus;
  config.trace = {100, 0};
  config.misses.good = 99;
  config.config = {{"policy", "chunked"}};
  config.metrics = {
      {"output_throughput", throughput}, {"mean_tpot_ms", tpot_ms},   {"duration", 3600.0},
      {"total_output_tokens", 2e6},      {"total_input_tokens", 6e6}, {"request_throughput", rate}};
  return config;
}

}  // namespace

TEST_CASE("the objective decides which is best") {
  SearchResult result;
  result.evaluated = {config_with(4, 4, 100, 20), config_with(3, 2, 100, 20),
                      config_with(1.4, 1, 100, 20)};
  result.evaluated[0].gpu_hour_cost = 1;
  result.evaluated[1].gpu_hour_cost = 4;
  result.evaluated[2].gpu_hour_cost = 1;
  rank(result);
  CHECK(result.best == 1);
  result.settings.objective = Objective::kGoodput;
  result.best.reset();
  rank(result);
  CHECK(result.best == 0);
  result.settings.objective = Objective::kGoodputPerDollar;
  result.best.reset();
  rank(result);
  CHECK(result.best == 2);
  CHECK(result.evaluated[2].goodput_per_dollar() == Approx(1.4 * 3600));
  const Cost cost = result.evaluated[1].cost();
  CHECK(cost.usd == Approx(8));
  CHECK(cost.per_million_output_tokens == Approx(4));
  CHECK(cost.per_million_tokens == Approx(1));
}

TEST_CASE("requests that a model cannot serve are not in its goodput") {
  SearchResult result;
  result.evaluated = {config_with(10, 1, 100, 20), config_with(4, 1, 100, 20)};
  result.evaluated[0].trace = {100, 70};  // 3 served of 10 that come in a second
  rank(result);
  CHECK(result.best == 1);
  CHECK(result.evaluated[0].goodput_per_gpu() == Approx(3));
}

TEST_CASE("ties go to the first, and nobody is best where nobody meets the target") {
  SearchResult result;
  result.evaluated = {config_with(2, 1, 1, 1), config_with(2, 1, 1, 1)};
  rank(result);
  CHECK(result.best == 0);
  for (EvaluatedConfig& config : result.evaluated) config.status = SearchStatus::kUnmet;
  result.best.reset();
  rank(result);
  CHECK_FALSE(result.best);
  CHECK(result.pareto.empty());
}

TEST_CASE("the Pareto front holds whom no other beats, and nobody else") {
  Rng rng(4, "test.pareto");
  for (int round = 0; round < 200; ++round) {
    SearchResult result;
    for (int i = 0; i < 12; ++i) {
      result.evaluated.push_back(config_with(1, 1, 1 + static_cast<double>(rng.below(8)),
                                             1000 / (1 + static_cast<double>(rng.below(8)))));
    }
    rank(result);
    for (std::size_t i = 0; i < result.evaluated.size(); ++i) {
      const EvaluatedConfig& a = result.evaluated[i];
      bool beaten = false;
      bool has_twin_on_front = false;
      for (std::size_t j = 0; j < result.evaluated.size(); ++j) {
        const EvaluatedConfig& b = result.evaluated[j];
        const double x = b.throughput_per_gpu() - a.throughput_per_gpu();
        const double y = b.tokens_per_s_per_user() - a.tokens_per_s_per_user();
        beaten = beaten || (x >= 0 && y >= 0 && x + y > 0);
        has_twin_on_front =
            has_twin_on_front ||
            (x == 0 && y == 0 &&
             std::find(result.pareto.begin(), result.pareto.end(), j) != result.pareto.end());
      }
      CHECK(has_twin_on_front == !beaten);
    }
  }
}

TEST_CASE("documents hold the same figures, and the export no command") {
  SearchResult result;
  result.settings.trace = "t.jsonl";
  result.evaluated = {config_with(2, 1, 10, 20)};
  EvaluatedConfig infeasible;
  infeasible.varied = {{"tensor-parallel-size", "3"}};
  infeasible.reason = "does not divide, \"at all\"";
  result.evaluated.push_back(infeasible);
  rank(result);
  const auto document = nlohmann::json::parse(search_json(result, "simulate search"));
  CHECK(document["schema"] == "servesim/search/v1");
  CHECK(document["best"]["max_request_rate"] == 2);
  CHECK(document["best"]["metrics"]["output_throughput"] == 10);
  CHECK(document["evaluated"].size() == 2);
  CHECK(document["evaluated"][1]["status"] == "infeasible");
  CHECK(document["pareto"] == nlohmann::json::array({0}));
  CHECK_FALSE(nlohmann::json::parse(search_json(result, "")).contains("command"));
  const std::string csv = search_csv(result);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(csv.find("\"does not divide, \"\"at all\"\"\"") != std::string::npos);
  CHECK_THROWS_AS(parse_objective("goodput-per-gpus"), InputError);
}

TEST_CASE("a row of two pools shows the settings of both, where they differ") {
  SearchResult result;
  result.evaluated = {config_with(2, 4, 10, 20)};
  result.evaluated[0].config = {{"policy", "disaggregated"},
                                {"kv", "paged"},
                                {"prefill", {{"model", "m"}, {"hardware", "h"}, {"replicas", 1}}},
                                {"decode", {{"model", "m"}, {"hardware", "l"}, {"replicas", 3}}}};
  rank(result);
  const std::string csv = search_csv(result);
  INFO(csv);
  CHECK(csv.find(",m,h + l,disaggregated,paged,,,1 + 3,") != std::string::npos);
}

}  // namespace servesim
