/// Do comparisons agree with the records of the runs they compare?
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

using nlohmann::json;
using testing::ProcessResult;
using testing::simulate;
using testing::TemporaryFolder;

std::string shipped_trace(const std::string& name) {
  return std::string(SERVESIM_SOURCE_DIR) + "/workloads/" + name + ".jsonl";
}

/// TTFT by position in the trace; -1 where there is none.
std::vector<double> ttfts(const std::string& policy, const std::string& folder) {
  const std::string path = folder + "/" + policy + ".jsonl";
  const ProcessResult result =
      simulate({"--trace", shipped_trace("code"), "--num-prompts", "300", "--request-rate", "12",
                "--policy", policy, "--requests", path, "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::vector<double> values(300, -1);
  std::stringstream lines(testing::read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    if (row["ttft_ms"].is_number()) values.at(row["index"]) = row["ttft_ms"];
  }
  return values;
}

}  // namespace

TEST_CASE("paired differences are those of the records") {
  const TemporaryFolder folder;
  const ProcessResult result =
      simulate({"--trace", shipped_trace("code"), "--num-prompts", "300", "--request-rate", "12",
                "--policy", "static,chunked", "--json", "-"});
  REQUIRE(result.exit_code == 0);
  const json comparison = json::parse(result.out)["comparison"];
  const std::vector<double> a = ttfts("static", folder.path());
  const std::vector<double> b = ttfts("chunked", folder.path());
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] >= 0 && b[i] >= 0) differences.push_back(b[i] - a[i]);
  }
  std::sort(differences.begin(), differences.end());
  const json& paired = comparison["paired"][0];
  CHECK(paired["metric"] == "ttft_ms");
  CHECK(paired["pairs"] == differences.size());
  const double median =
      (differences[(differences.size() - 1) / 2] + differences[differences.size() / 2]) / 2;
  CHECK(paired["median_difference_ms"].get<double>() == Approx(median).epsilon(1e-4));
  const auto better = std::count_if(differences.begin(), differences.end(),
                                    [](double difference) { return difference < 0; });
  CHECK(paired["share_improved"].get<double>() ==
        Approx(static_cast<double>(better) / static_cast<double>(differences.size())).margin(0.01));
}

TEST_CASE("several workloads give a table per metric, and a verdict in words") {
  const ProcessResult result =
      simulate({"--trace", shipped_trace("chat"), "--trace", shipped_trace("code"), "--policy",
                "static", "--policy", "continuous", "--policy", "chunked", "--num-prompts", "200"});
  REQUIRE(result.exit_code == 0);
  for (const char* word : {"mean TTFT, ms", "output tokens/s", "Verdict", "The same requests"}) {
    INFO(word);
    CHECK(result.out.find(word) != std::string::npos);
  }
}

TEST_CASE("the document of a comparison agrees with its runs, at any number of threads") {
  const auto run = [](const std::string& threads) {
    const ProcessResult result =
        simulate({"--trace", shipped_trace("chat"), "--policy", "static,chunked", "--request-rate",
                  "1,30", "--num-prompts", "200", "--threads", threads, "--json", "-"});
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out);
  };
  const json document = run("1");
  const json& comparison = document["comparison"];
  CHECK(run("4")["comparison"] == comparison);
  REQUIRE(comparison["workloads"].size() == 2);
  REQUIRE(comparison["alternatives"].size() == 2);
  for (const json& metric : comparison["metrics"]) {
    for (std::size_t policy = 0; policy < 2; ++policy) {
      for (std::size_t rate = 0; rate < 2; ++rate) {
        const json& one = document["runs"][2 * policy + rate];
        CHECK(metric["values"][rate][policy] == one[metric["name"].get<std::string>()]);
      }
    }
  }
}

TEST_CASE("one alternative is no comparison") {
  const ProcessResult result = simulate({"--trace", shipped_trace("chat"), "--request-rate", "1,2",
                                         "--num-prompts", "50", "--json", "-"});
  CHECK_FALSE(json::parse(result.out).contains("comparison"));
}

TEST_CASE("a folder of traces is what its traces are one by one") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/set");
  folder.write("set/b.jsonl", "{\"arrival_ms\": 0, \"input_tokens\": 10, \"output_tokens\": 5}\n");
  folder.write("set/a.jsonl", "{\"arrival_ms\": 0, \"input_tokens\": 20, \"output_tokens\": 5}\n");
  folder.write("set/README.md", "no trace");
  const ProcessResult result = simulate({"--trace-set", folder.path() + "/set", "--json", "-"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json runs = json::parse(result.out)["runs"];
  REQUIRE(runs.size() == 2);
  CHECK(runs[0]["trace"] == "a.jsonl");
  CHECK(runs[1]["trace"] == "b.jsonl");
  CHECK(simulate({"--trace-set", "/no/such/folder"}).exit_code == 2);
  CHECK(simulate({"--trace-set", folder.path() + "/set", "--trace", folder.path() + "/set/a.jsonl"})
            .exit_code == 2);
  std::filesystem::create_directory(folder.path() + "/empty");
  CHECK(simulate({"--trace-set", folder.path() + "/empty"}).exit_code == 2);
}

TEST_CASE("dollars per million tokens follow from the price, the GPUs and the duration") {
  const ProcessResult result =
      simulate({"--trace", shipped_trace("chat"), "--num-prompts", "100", "--tensor-parallel-size",
                "2", "--replicas", "3", "--gpu-hour-cost", "2.5", "--json", "-"});
  REQUIRE(result.exit_code == 0);
  const json run = json::parse(result.out)["runs"][0];
  const double usd = 2.5 * 6 * run["duration"].get<double>() / 3600;
  CHECK(run["cost"]["gpus"] == 6);
  CHECK(run["cost"]["usd"].get<double>() == Approx(usd));
  CHECK(run["cost"]["usd_per_million_output_tokens"].get<double>() ==
        Approx(usd * 1e6 / run["total_output_tokens"].get<double>()));
  CHECK_FALSE(
      json::parse(simulate({"--trace", shipped_trace("chat"), "--num-prompts", "10", "--json", "-"})
                      .out)["runs"][0]
          .contains("cost"));
}

}  // namespace servesim
