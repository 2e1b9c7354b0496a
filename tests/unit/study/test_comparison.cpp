/// Do comparisons pair the same requests, and does the verdict say what the numbers say?
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/rng.hpp"
#include "report/percentile.hpp"
#include "study/comparison.hpp"
#include "support/catch.hpp"
#include "unit/report/records.hpp"

namespace servesim {
namespace {

RunResult result_with(const std::string& trace, double e2el_ms) {
  RunResult result;
  result.trace = trace;
  Metrics& m = result.metrics;
  m.duration_s = 10;
  m.total_output_tokens = 1000;
  m.ttft_ms.count = m.tpot_ms.count = m.itl_ms.count = m.e2el_ms.count = 1;
  m.ttft_ms.mean = m.tpot_ms.mean = 1;
  m.e2el_ms.mean = e2el_ms;
  return result;
}

/// Runs over `loads` (rows) and alternatives "A", "B", ...; values are mean E2E.
std::vector<std::string> verdict_for(const std::vector<std::vector<double>>& values,
                                     const std::vector<std::string>& loads) {
  std::vector<std::vector<RunResult>> results;
  std::vector<ComparedRun> runs;
  for (const auto& row : values) {
    results.emplace_back();
    for (const double value : row) results.back().push_back(result_with("t", value));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < values[i].size(); ++j) {
      runs.push_back({&results[i][j],
                      nullptr,
                      "t",
                      {{"request-rate", loads[i]}},
                      {{"policy", std::string(1, static_cast<char>('A' + j))}}});
    }
  }
  return compare(runs)->verdict;
}

}  // namespace

TEST_CASE("differences of pairs are those of the requests that both runs completed") {
  Rng rng(5, "test.pairs");
  for (int round = 0; round < 200; ++round) {
    std::vector<float> base;
    std::vector<float> other;
    std::vector<double> expected;
    const std::size_t n = rng.below(40);
    std::int64_t better = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool missing = rng.uniform() < 0.2;
      base.push_back(static_cast<float>(rng.below(50)));
      other.push_back(missing ? std::numeric_limits<float>::quiet_NaN()
                              : static_cast<float>(rng.below(50)));
      if (missing) continue;
      expected.push_back(static_cast<double>(other.back()) - base.back());
      better += other.back() < base.back() ? 1 : 0;
    }
    if (rng.uniform() < 0.3) base.push_back(1);  // the other run ended earlier
    const PairedDifference d = paired_difference(base, other);
    REQUIRE(d.pairs == static_cast<std::int64_t>(expected.size()));
    if (expected.empty()) continue;
    std::sort(expected.begin(), expected.end());
    const std::size_t half = expected.size() / 2;
    const double median =
        expected.size() % 2 == 1 ? expected[half] : (expected[half - 1] + expected[half]) / 2;
    CHECK(d.median_ms == Approx(median));
    CHECK(d.improved == Approx(static_cast<double>(better) / static_cast<double>(d.pairs)));
    CHECK(d.improved + d.worsened <= 1 + 1e-12);
  }
}

TEST_CASE("columns stand at the request's place in the trace, whenever it ends") {
  RequestColumns columns;
  columns.on_request(testing::completed(3, 0, 1, 20, 120, 11));
  columns.on_request(testing::completed(1, 10, 11, 15, 15, 1));
  columns.on_request(testing::not_completed(4, 0, RequestStatus::kRejected, "why"));
  REQUIRE(columns.ttft_ms().size() == 5);
  CHECK(columns.ttft_ms()[3] == 20);
  CHECK(columns.tpot_ms()[3] == 10);
  CHECK(columns.e2el_ms()[3] == 120);
  CHECK(columns.ttft_ms()[1] == 5);
  CHECK(std::isnan(columns.tpot_ms()[1]));
  CHECK(std::isnan(columns.e2el_ms()[0]));
  CHECK(std::isnan(columns.e2el_ms()[4]));
}

TEST_CASE("the verdict names the winner and its lead") {
  CHECK(verdict_for({{200, 100, 150}}, {"1"})[0] == "mean E2E: B wins, 33 % lower than C");
  CHECK(verdict_for({{200, 100}, {110, 100}}, {"1", "2"})[0] ==
        "mean E2E: B wins everywhere, 9.1 to 50 % lower than A");
}

TEST_CASE("the verdict says where it flips") {
  CHECK(verdict_for({{100, 200}, {100, 150}, {100, 50}, {100, 20}}, {"1", "2", "4", "8"})[0] ==
        "mean E2E flips: A on request-rate 1 to 2, 33 to 50 % lower than B; B on request-rate 4 to "
        "8, 50 to 80 % lower than A");
}

TEST_CASE("the verdict takes no ratio of nothing, and compares no figure that one alone has") {
  RunResult some = result_with("t", 100);
  RunResult none = result_with("t", 0);
  none.metrics.duration_s = 0;
  none.metrics.total_output_tokens = 0;
  none.metrics.ttft_ms.count = none.metrics.tpot_ms.count = none.metrics.e2el_ms.count = 0;
  const auto verdict = compare({{&some, nullptr, "t", {}, {{"policy", "A"}}},
                                {&none, nullptr, "t", {}, {{"policy", "B"}}}})
                           ->verdict;
  CHECK(verdict == std::vector<std::string>{"output tokens/s: A wins, B at 0"});
}

TEST_CASE("the verdict calls level what is level") {
  const auto all_level = verdict_for({{100, 100.2}}, {"1"});
  REQUIRE(all_level.size() == 1);
  CHECK(all_level[0].find("no difference above 0.5 %") == 0);
  CHECK(all_level[0].find("mean E2E") != std::string::npos);
  CHECK(verdict_for({{100, 100, 200}}, {"1"})[0] ==
        "mean E2E: A and B level are best, 50 % lower than C");
  CHECK(verdict_for({{100, 100}, {100, 50}}, {"1", "2"})[0] ==
        "mean E2E: B never loses: A and B level on request-rate 1; B on request-rate 2, 50 % lower "
        "than A");
}

TEST_CASE("a single alternative is no comparison, and traces of one name stay apart") {
  const RunResult a = result_with("same.jsonl", 1);
  const RunResult b = result_with("same.jsonl", 2);
  CHECK_FALSE(
      compare({{&a, nullptr, "x/same.jsonl", {}, {}}, {&b, nullptr, "y/same.jsonl", {}, {}}}));
  const NamedValues left{{"policy", "static"}};
  const NamedValues right{{"policy", "chunked"}};
  const auto both = compare({{&a, nullptr, "x/same.jsonl", {}, left},
                             {&b, nullptr, "y/same.jsonl", {}, left},
                             {&b, nullptr, "x/same.jsonl", {}, right},
                             {&a, nullptr, "y/same.jsonl", {}, right}});
  REQUIRE(both);
  REQUIRE(both->workloads.size() == 2);
  CHECK(both->workloads[0].name == "x/same.jsonl");
  CHECK(both->verdict[0].find("flips: static on x/same.jsonl") != std::string::npos);
  const auto json = comparison_json(*both);
  CHECK(json["alternatives"][1]["policy"] == "chunked");
  CHECK(json["metrics"][0]["values"][1][0] == 2);
  CHECK(json["metrics"][0]["winners"][1][0] == 1);
  CHECK(metric_tables(*both, {}).find("*") != std::string::npos);
}

}  // namespace servesim
