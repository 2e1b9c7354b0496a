/// Does the program behave: exit codes, streams, determinism, conservation?
#include <csignal>
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

const std::string kRoot = SERVESIM_SOURCE_DIR;

std::string workload(const std::string& name) {
  return kRoot + "/workloads/" + name + ".jsonl";
}

/// The document without what may differ between two runs of the same command.
json comparable(const std::string& text) {
  json document = json::parse(text);
  document.erase("command");
  for (json& run : document["runs"]) run.erase("sim");
  return document;
}

}  // namespace

TEST_CASE("help, version and lists") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--version"},
                                             {"list"},
                                             {"list", "models"},
                                             {"list", "policies"},
                                             {"list", "--help"},
                                             {"generate", "--help"},
                                             {"explain", "--help"},
                                             {"size"},
                                             {"size", "--help"},
                                             {"help"},
                                             {"explain", "--batch", "8", "--prefill", "100@50"}}) {
    const ProcessResult result = simulate(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK_FALSE(result.out.empty());
    CHECK(result.err.empty());
  }
}

TEST_CASE("a table on stdout, and nothing on stderr that is no terminal") {
  const ProcessResult result = simulate({"--trace", workload("chat"), "--num-prompts", "200",
                                         "--policy", "static", "--policy", "continuous,chunked"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  for (const char* word : {"static", "continuous", "chunked", "TTFT", "chat.jsonl"}) {
    CHECK(result.out.find(word) != std::string::npos);
  }
  CHECK(result.out.find('\x1b') == std::string::npos);
}

TEST_CASE("--json - puts the document alone on stdout") {
  const ProcessResult result = simulate({"--trace", workload("chat"), "--num-prompts", "50",
                                         "--json", "-", "--goodput", "ttft:500", "tpot:50"});
  REQUIRE(result.exit_code == 0);
  const json document = json::parse(result.out);
  CHECK(document["schema"] == "servesim/result/v1");
  CHECK(document["runs"][0]["request_goodput"].is_number());
  CHECK(document["runs"][0]["config"]["hash"].is_string());
}

TEST_CASE("the same command gives the same bytes at any number of threads") {
  const auto run = [](const std::string& threads) {
    const ProcessResult result =
        simulate({"--trace", workload("chat"), "--trace", workload("code"), "--policy",
                  "static,continuous,chunked", "--max-num-seqs", "16,256", "--request-rate", "20",
                  "--num-prompts", "150", "--seed", "3", "--threads", threads, "--json", "-"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return comparable(result.out);
  };
  const json first = run("1");
  CHECK(first["runs"].size() == 12);
  CHECK(run("1").dump() == first.dump());
  CHECK(run("4").dump() == first.dump());
}

TEST_CASE("every request ends in one bucket, in the result and in the records") {
  const TemporaryFolder folder;
  const std::string trace =
      folder.write("mixed.jsonl",
                   "# a comment\r\n\r\n"
                   "{\"arrival_ms\": 0, \"input_tokens\": 100, \"output_tokens\": 20}\r\n"
                   "{\"arrival_ms\": 1.5, \"input_tokens\": 0, \"output_tokens\": 20}\r\n"
                   "{\"arrival_ms\": 2, \"input_tokens\": 100, \"output_tokens\": 0}\r\n"
                   "{\"arrival_ms\": 1, \"input_tokens\": 900000, \"output_tokens\": 20}\r\n"
                   "{\"arrival_ms\": 3, \"input_tokens\": 5, \"output_tokens\": 1}");
  const std::string records = folder.path() + "/out.csv";
  const ProcessResult result = simulate({"--trace", trace, "--json", "-", "--requests", records});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json run = json::parse(result.out)["runs"][0];
  CHECK(run["requests"] ==
        json({{"total", 5}, {"completed", 2}, {"rejected", 3}, {"unfinished", 0}}));
  CHECK(run["completed"] == 2);
  CHECK(run["total_output_tokens"] == 21);
  CHECK(run["warnings"].size() >= 3);
  std::stringstream lines(testing::read_file(records));
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) ++rows;
  CHECK(rows == 6);
}

TEST_CASE("a model with a sliding window holds more sequences than its twin without") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 60; ++i) {
    lines += "{\"arrival_ms\": 0, \"input_tokens\": 28000, \"output_tokens\": 800}\n";
  }
  const std::string trace = folder.write("long.jsonl", lines);
  const auto run = [&](const std::string& model, const std::string& prefix_caching) {
    const ProcessResult result =
        simulate({"--trace", trace, "--model", model, "--hardware", "h100-sxm",
                  "--enable-prefix-caching", prefix_caching, "--json", "-"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out)["runs"][0];
  };
  const json plain = run("mistral-7b", "false");
  const json windowed = run("mistral-7b-v0.1", "false");
  const std::int64_t capacity = windowed["kv"]["capacity_tokens"];
  CHECK(capacity < 20 * 28'000);  // the whole trace never fits, its windows of 4096 tokens do
  const double few = plain["engine"]["mean_batch_size"];
  const double many = windowed["engine"]["mean_batch_size"];
  CHECK(many > 2.5 * few);
  CHECK(windowed["kv"]["preemptions"] == 0);
  CHECK(windowed["config"]["layer_groups"]["window"] == 4096);
  for (const char* at : {"", "at_peak"}) {
    const json& kv = *at == 0 ? windowed["kv"] : windowed["kv"]["at_peak"];
    const double used = kv[*at == 0 ? "mean_used" : "used"];
    const double rest = kv["internal_fragmentation"].get<double>() +
                        kv["reservation_waste"].get<double>() +
                        kv["external_fragmentation"].get<double>() + kv["free"].get<double>();
    CHECK(used + rest == Approx(1));
    CHECK(kv["free"] >= 0);
  }
  const json cached = run("mistral-7b-v0.1", "true");  // prefix caching keeps everything
  CHECK_FALSE(cached["config"].contains("layer_groups"));
  CHECK(cached["warnings"].dump().find("frees the blocks behind the window") != std::string::npos);
}

TEST_CASE("generated traces are the same for the same seed, and run") {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, const std::string& seed) {
    REQUIRE(simulate({"generate", "--spec", "chat", "--num-prompts", "100", "--seed", seed,
                      "--output", folder.path() + "/" + name})
                .exit_code == 0);
    return testing::read_file(folder.path() + "/" + name);
  };
  CHECK(make("a", "1") == make("b", "1"));
  CHECK(make("c", "2") != make("d", "1"));
  CHECK(simulate({"--trace", folder.path() + "/a", "--quiet"}).exit_code == 0);
}

TEST_CASE("a trace on stdin gives what the file gives") {
  const std::string text = testing::read_file(workload("chat"));
  const std::vector<std::string> rest{"--num-prompts",  "50",     "--policy",
                                      "static,chunked", "--json", "-"};
  std::vector<std::string> from_file{"--trace", workload("chat")};
  std::vector<std::string> from_stdin{"--trace", "-"};
  from_file.insert(from_file.end(), rest.begin(), rest.end());
  from_stdin.insert(from_stdin.end(), rest.begin(), rest.end());
  json a = comparable(simulate(from_file).out);
  json b = comparable(simulate(from_stdin, "", text).out);
  for (json& run : a["runs"]) run.erase("trace");
  for (json& run : b["runs"]) run.erase("trace");
  for (json* document : {&a, &b}) (*document)["comparison"].erase("workloads");
  CHECK(a == b);
}

TEST_CASE("an interrupt ends a run with what is known, and leaves no file") {
  const TemporaryFolder folder;
  const std::string many = folder.path() + "/many.jsonl";
  REQUIRE(simulate({"generate", "--spec", "chat", "--num-prompts", "60000", "--output", many})
              .exit_code == 0);
  std::string runs = "1";
  for (int i = 2; i <= 100; ++i) runs += "," + std::to_string(i);
  const ProcessResult result = testing::shell("exec timeout -s INT 4 '" + testing::binary() +
                                                  "' --trace many.jsonl --max-num-seqs " + runs +
                                                  " --threads 1 --json out.json --quiet",
                                              folder.path());
  INFO(result.err);
  CHECK((result.exit_code == 130 || result.exit_code == 124));
  CHECK(result.err.find("interrupted") != std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"many.jsonl"});
}

TEST_CASE("a reader that goes away is no fault") {
  const TemporaryFolder folder;
  const ProcessResult result =
      testing::shell("simulate list | head -n 1; simulate --help | true", folder.path());
  CHECK(result.err.empty());
}

}  // namespace servesim
