/// Does a search find what a grid of plain runs finds, and lose nothing when it is killed?
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/rng.hpp"
#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

using nlohmann::json;
using testing::ProcessResult;
using testing::simulate;
using testing::TemporaryFolder;

using Words = std::vector<std::string>;

const Words kTarget{"--goodput", "ttft:500", "tpot:50"};

std::string shipped(const std::string& name) {
  return std::string(SERVESIM_SOURCE_DIR) + "/workloads/" + name + ".jsonl";
}

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

json search(const Words& arguments) {
  const ProcessResult result = simulate(Words{"search"} + arguments + Words{"--json", "-"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  return json::parse(result.out);
}

/// The highest of 45 rates within 11 % of `around` that meets the target, by plain runs.
double grid_capacity(const Words& run, double around, double attainment) {
  std::string rates;
  for (int i = -22; i <= 22; ++i) {
    rates += (rates.empty() ? "" : ",") + std::to_string(around * (1 + 0.005 * i));
  }
  const ProcessResult result = simulate(run + Words{"--request-rate", rates, "--json", "-"});
  REQUIRE(result.exit_code == 0);
  double best = 0;
  const json document = json::parse(result.out);
  for (const json& one : document["runs"]) {
    const double good = one["request_goodput"].get<double>() * one["duration"].get<double>();
    if (std::round(good) < attainment * one["requests"]["total"].get<double>()) continue;
    best = std::max(best, std::stod(one["config"]["request_rate"].get<std::string>()));
  }
  return best;
}

void check_refused_search(const Words& arguments, const Words& expected) {
  const ProcessResult result = simulate(Words{"search"} + arguments);
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.error_lines() == 1);
  CHECK(result.out.empty());
  for (const std::string& word : expected) {
    INFO("expected: " << word);
    CHECK(result.err.find(word) != std::string::npos);
  }
}

const Words kSpace{"--trace",
                   shipped("chat"),
                   "--num-prompts",
                   "400",
                   "--policy",
                   "continuous,chunked",
                   "--max-num-seqs",
                   "8,16,32,64",
                   "--tensor-parallel-size",
                   "1,2",
                   "--block-size",
                   "16,32"};

}  // namespace

TEST_CASE("a capacity search agrees with a fine grid of plain runs within 2 %") {
  int compared = 0;
  for (const char* workload : {"chat", "code", "long-context"}) {
    for (const char* policy : {"static", "continuous", "chunked"}) {
      // Few requests, of which few may miss: where attainment falls least evenly with the rate.
      const Words run{"--trace", shipped(workload), "--policy",  policy,   "--num-prompts",
                      "300",     "--goodput",       "ttft:2000", "tpot:50"};
      for (const char* attainment : {"0.9", "0.95"}) {
        const double found =
            search(run + Words{"--attainment", attainment})["best"]["max_request_rate"];
        const double best = grid_capacity(run, found, std::stod(attainment));
        INFO(workload << " " << policy << " " << attainment << ": search " << found << ", grid "
                      << best);
        CHECK(std::abs(best / found - 1) < 0.02);
        ++compared;
      }
    }
  }
  CHECK(compared == 18);
}

TEST_CASE("the best rate's plain run gives the metrics that the search reports") {
  const Words run{"--trace", shipped("chat"), "--num-prompts", "400", "--policy", "chunked"};
  const json best = search(run + kTarget)["best"];
  const std::string rate = best["config"]["request_rate"];
  const ProcessResult plain =
      simulate(run + kTarget + Words{"--request-rate", rate, "--json", "-"});
  const json one = json::parse(plain.out)["runs"][0];
  CHECK(one["config"] == best["config"]);
  for (const char* key : {"p99_ttft_ms", "mean_tpot_ms", "request_goodput", "duration", "kv"}) {
    CHECK(one[key] == best["metrics"][key]);
  }
  CHECK(best["attainment"].get<double>() >= 0.99);
  CHECK(best["requests"]["good"].get<int>() + best["requests"]["missed"].get<int>() == 400);
}

TEST_CASE("a search over a space gives the same document at any number of threads") {
  json first;
  for (const char* threads : {"1", "3"}) {
    json document = search(kSpace + kTarget + Words{"--threads", threads});
    document.erase("command");
    CHECK(document["evaluated"].size() == 32);
    if (first.is_null()) first = document;
    CHECK(document == first);
  }
  double best = 0;
  for (const json& entry : first["evaluated"]) {
    if (entry["status"] == "met") best = std::max(best, entry["goodput_per_gpu"].get<double>());
  }
  CHECK(first["best"]["goodput_per_gpu"] == best);
  CHECK(first["schema"] == "servesim/search/v1");
  CHECK_FALSE(first["pareto"].empty());
}

TEST_CASE("what fits nowhere is said, not dropped") {
  const json document =
      search({"--trace", shipped("chat"), "--num-prompts", "200", "--model", "llama-2-70b",
              "--tensor-parallel-size", "1,4", "--goodput", "ttft:1000", "tpot:100"});
  CHECK(document["evaluated"][0]["status"] == "infeasible");
  CHECK_FALSE(document["evaluated"][0]["reason"].get<std::string>().empty());
  CHECK(document["evaluated"][1]["status"] == "met");
  CHECK(document["best"]["gpus"] == 4);
}

TEST_CASE("a search killed ten times and resumed exports what one left alone does") {
  const TemporaryFolder folder;
  std::string words;
  for (const std::string& word : kSpace + kTarget) words += " '" + word + "'";
  const auto command = [&words](const std::string& name, const std::string& extension) {
    return "simulate search" + words + " --threads 2 --results-db " + name + ".sqlite --export " +
           name + "." + extension + " --quiet";
  };
  REQUIRE(testing::shell(command("alone", "json"), folder.path()).exit_code == 0);
  Rng rng(7, "test.kill");
  for (int i = 0; i < 10; ++i) {
    const std::string pause = std::to_string(0.05 + 0.4 * rng.uniform());
    testing::shell("exec timeout -s KILL " + pause + " sh -c 'exec " + testing::binary() +
                       " \"$@\"'" + " x" + command("killed", "json").substr(8),
                   folder.path());
  }
  const ProcessResult resumed = testing::shell(command("killed", "json"), folder.path());
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  const std::string alone = testing::read_file(folder.path() + "/alone.json");
  CHECK(testing::read_file(folder.path() + "/killed.json") == alone);
  CHECK(json::parse(alone)["evaluated"].size() == 32);
  for (const char* name : {"alone", "killed"}) {
    REQUIRE(testing::shell(command(name, "csv"), folder.path()).exit_code == 0);
  }
  CHECK(testing::read_file(folder.path() + "/killed.csv") ==
        testing::read_file(folder.path() + "/alone.csv"));
  std::vector<std::string> names = folder.names();
  std::erase_if(names, [](const std::string& name) {
    // A process that is killed while it writes its export cannot take the temporary file along.
    return name.starts_with("killed.json.") && name.ends_with(".tmp");
  });
  CHECK(names.size() == 6);
}

TEST_CASE("two processes may fill one database, and another attainment reuses it") {
  const TemporaryFolder folder;
  const std::string base = "simulate search --trace '" + shipped("chat") +
                           "' --num-prompts 200 --max-num-seqs 8,16,32 --goodput ttft:500 tpot:50 "
                           "--results-db runs.sqlite --quiet --json ";
  const ProcessResult both =
      testing::shell(base + "a.json & " + base + "b.json & wait %1 && wait %2", folder.path());
  INFO(both.err);
  REQUIRE(both.exit_code == 0);
  json a = json::parse(testing::read_file(folder.path() + "/a.json"));
  json b = json::parse(testing::read_file(folder.path() + "/b.json"));
  a.erase("command");
  b.erase("command");
  CHECK(a == b);
  const auto laxer = [&](const std::string& name, const std::string& store) {
    const ProcessResult result =
        testing::shell(base + name + " --attainment 0.5" + store, folder.path());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    json document = json::parse(testing::read_file(folder.path() + "/" + name));
    document.erase("command");
    return document;
  };
  const json reused = laxer("c.json", "");
  CHECK(reused["best"]["max_request_rate"] > a["best"]["max_request_rate"]);
  std::filesystem::remove(folder.path() + "/runs.sqlite");
  CHECK(laxer("d.json", "") == reused);
}

TEST_CASE("a target that nobody meets names what binds") {
  const Words run{"--trace", shipped("chat"), "--num-prompts", "200"};
  check_refused_search(run + Words{"--goodput", "tpot:0.5"}, {"TPOT binds", "at any rate"});
  check_refused_search(run + Words{"--goodput", "ttft:0.5"}, {"TTFT binds"});
  check_refused_search(run + Words{"--goodput", "ttft:5000", "--num-gpu-blocks-override", "4"},
                       {"rejection binds"});
}

TEST_CASE("a trace that is too short to find a limit says so") {
  const json document =
      search({"--trace", shipped("chat"), "--num-prompts", "20", "--goodput", "ttft:60000"});
  CHECK(document["best"]["status"] == "unbounded");
  CHECK(document["best"]["max_request_rate"].is_null());
  CHECK(document["best"]["goodput_per_gpu"].get<double>() > 0);
}

TEST_CASE("requests that no configuration can serve are left out, unless they are to count") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    const int input = i % 10 == 0 ? 200'000 : 100;
    text += "{\"arrival_ms\": " + std::to_string(i) +
            ", \"input_tokens\": " + std::to_string(input) + ", \"output_tokens\": 50}\n";
  }
  const Words run{"--trace", folder.write("t.jsonl", text), "--goodput", "ttft:200", "tpot:20"};
  const json best = search(run)["best"];
  CHECK(best["requests"]["unservable"] == 10);
  CHECK(best["requests"]["counted"] == 90);
  check_refused_search(run + Words{"--count-unservable"}, {"rejection binds", "context"});
  CHECK(search(run + Words{"--count-unservable", "--attainment", "0.9"})["best"]["status"] ==
        "met");
}

TEST_CASE("searches that are none") {
  const TemporaryFolder folder;
  const Words run{"--trace", shipped("chat"), "--num-prompts", "20"};
  const auto space = [&](const std::string& text) {
    return run + kTarget + Words{"--space", folder.write("s.json", text)};
  };
  check_refused_search(kTarget, {"--trace"});
  check_refused_search(run, {"--goodput"});
  check_refused_search(run + kTarget + Words{"--attainment", "1.5"}, {"--attainment"});
  check_refused_search(run + kTarget + Words{"--tolerance", "0"}, {"--tolerance"});
  check_refused_search(run + kTarget + Words{"--request-rate", "3"}, {"--request-rate"});
  check_refused_search(run + kTarget + Words{"--objective", "best"}, {"goodput-per-gpu"});
  check_refused_search(run + kTarget + Words{"--objective", "goodput-per-dollar"},
                       {"--gpu-hour-cost"});
  check_refused_search(run + kTarget + Words{"--max-concurrency", "8"}, {"--max-concurrency"});
  check_refused_search(run + kTarget + Words{"--gpu-hour-cost", "h100-sxm:2", "h100-smx:1"},
                       {"h100-smx", "no run uses it"});
  check_refused_search(
      run + kTarget + Words{"--objective", "goodput-per-dollar", "--gpu-hour-cost", "0"},
      {"prices above 0"});
  check_refused_search(run + kTarget + Words{"--results-db", "a.sqlite", "--json", "a.sqlite-wal"},
                       {"SQLite"});
  check_refused_search(run + kTarget + Words{"--export", "x.txt"}, {".csv"});
  check_refused_search(run + kTarget + Words{"--report", "x.htm"}, {".html"});
  check_refused_search(run + kTarget + Words{"--trace", shipped("code")}, {"one trace"});
  check_refused_search(run + kTarget + Words{"--model", "llama-2-70b"}, {"does not fit"});
  check_refused_search(space("{}"), {"s.json", "empty"});
  check_refused_search(space(R"({"polcy": ["chunked"]})"), {"did you mean 'policy'"});
  check_refused_search(space(R"({"policy": ["chunkd", "static"]})"), {"did you mean 'chunked'"});
  check_refused_search(space(R"({"num-prompts": [5]})"), {"--num-prompts", "twice"});
  const std::string text = folder.write("notes.txt", std::string(3000, 'x'));
  check_refused_search(run + kTarget + Words{"--results-db", text}, {"notes.txt", "SQLite"});
  check_refused_search(run + kTarget + Words{"--results-db", "/no/such/folder/r.sqlite"},
                       {"/no/such/folder"});
  check_refused_search(run + kTarget + Words{"--json", "/no/such/folder/r.json"},
                       {"/no/such/folder"});
}

TEST_CASE("a search writes a report with its front and its best run") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/search.html";
  const json result = search(Words{"--trace", shipped("chat"), "--num-prompts", "200"} + kTarget +
                             Words{"--max-num-seqs", "16,64", "--report", path});
  const std::string html = testing::read_file(path);
  const std::string open = "id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  const json data = json::parse(html.substr(begin, html.find("</script>", begin) - begin));
  REQUIRE(data["pareto"]["points"].size() == 2);
  std::size_t on_front = 0;
  for (const json& point : data["pareto"]["points"]) on_front += point["front"] == true ? 1 : 0;
  CHECK(on_front == result["pareto"].size());
  REQUIRE(data["runs"].size() == 1);
  json shown = data["runs"][0]["result"];
  CHECK(shown["request_throughput"] == result["best"]["metrics"]["request_throughput"]);
}

}  // namespace servesim
