/// Do the outputs have the form that is promised, and appear all or none?
#include <nlohmann/json.hpp>
#include <set>

#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

using nlohmann::json;
using testing::ProcessResult;
using testing::simulate;
using testing::TemporaryFolder;
using Keys = std::set<std::string>;

const std::string kChat = std::string(SERVESIM_SOURCE_DIR) + "/workloads/chat.jsonl";

Keys keys_of(const json& object) {
  Keys keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

}  // namespace

TEST_CASE("the parts of a result have exactly the keys of its schema, whatever ran") {
  for (const char* flag : {"--policy=static", "--policy=continuous", "--replicas=2",
                           "--step-time=linear:base_us=5000,per_token_us=10"}) {
    const ProcessResult result =
        simulate({"--trace", kChat, "--num-prompts", "60", "--json", "-", flag});
    INFO(flag << result.err);
    REQUIRE(result.exit_code == 0);
    const json document = json::parse(result.out);
    CHECK(keys_of(document) == Keys{"schema", "version", "command", "seed", "runs"});
    const json& run = document["runs"].at(0);
    CHECK(keys_of(run["requests"]) == Keys{"total", "completed", "rejected", "unfinished"});
    CHECK(keys_of(run["kv"]) ==
          Keys{"allocator", "num_gpu_blocks", "block_size", "capacity_tokens", "mean_used",
               "peak_used", "internal_fragmentation", "reservation_waste", "external_fragmentation",
               "free", "at_peak", "copied_bytes", "offload", "preemptions", "recomputed_tokens",
               "swapped_bytes", "prefix_hit_tokens", "prefix_hit_rate"});
    CHECK(keys_of(run["engine"]) == Keys{"steps", "mean_batch_size", "mean_step_ms",
                                         "busy_fraction", "mfu", "mbu", "time_by_component_s"});
    CHECK(keys_of(run["sim"]) == Keys{"wall_s", "cpu_s", "requests_per_s", "peak_rss_bytes"});
  }
}

TEST_CASE("a request's id reaches the rows whatever is in it") {
  const TemporaryFolder folder;
  const std::string id = R"(a,b "c" é)";
  const std::string trace = folder.write(
      "t.jsonl",
      json({{"id", id}, {"arrival_ms", 0}, {"input_tokens", 5}, {"output_tokens", 2}}).dump() +
          "\n");
  const auto rows = [&](const std::string& name) {
    const std::string path = folder.path() + "/" + name;
    const ProcessResult result = simulate({"--trace", trace, "--requests", path, "--quiet"});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return testing::read_file(path);
  };
  CHECK(json::parse(rows("rows.jsonl"))["request_id"] == id);
  CHECK(rows("rows.csv").find("\n0,\"a,b \"\"c\"\" é\",,0.000000,5,2,completed,") !=
        std::string::npos);
}

TEST_CASE("outputs appear all or none, and never two in one place") {
  const TemporaryFolder folder;
  const std::string base = "simulate --trace '" + kChat + "' --num-prompts 20 --quiet ";
  const std::vector<std::pair<std::string, std::string>> refused{
      {"--json out.json --schedule-log /dev/full", "/dev/full"},
      {"--json out.json --requests full.csv", "full.csv"},
      {"--json /dev/full", "/dev/full"},
      {"--json - >/dev/full", "standard output"},
      {"--json - --schedule-log /dev/stdout", "both write"},
      {"--json /dev/stdout --schedule-log /dev/stdout", "both write"},
      {"--schedule-log -", "only --json"},
      {"--requests -", "only --json"},
      {"--json out.json --requests ./out.json.csv --schedule-log out.json.csv", "both write"},
  };
  std::filesystem::create_symlink("/dev/full", folder.path() + "/full.csv");
  for (const auto& [flags, word] : refused) {
    const ProcessResult result = testing::shell(base + flags, folder.path());
    INFO(flags << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.error_lines() == 1);
    CHECK(result.err.find(word) != std::string::npos);
    CHECK(folder.names() == std::vector<std::string>{"full.csv"});
  }
  CHECK(
      testing::shell(base + "--json /dev/null --schedule-log /dev/null", folder.path()).exit_code ==
      0);
}

TEST_CASE("no verb writes over what it reads") {
  const TemporaryFolder folder;
  const auto copy = [&](const std::string& from, const std::string& to) {
    folder.write(to, testing::read_file(std::string(SERVESIM_SOURCE_DIR) + from));
  };
  copy("/workloads/chat.jsonl", "t.jsonl");
  copy("/workloads/chat.jsonl", "other.jsonl");
  copy("/workloads/specs/chat.json", "spec.json");
  copy("/models/llm/llama-3.1-8b.json", "model.json");
  copy("/models/hardware/h100-sxm.json", "gpu.json");
  copy("/models/link/ib-ndr400.json", "link.json");
  folder.write("scenario.json", R"({"events": []})");
  folder.write("space.json", R"({"model": ["model.json"], "max-num-seqs": [8, 16]})");
  folder.write("engine.json", R"({"num_gpu_blocks": 500, "step_us": {"base": 1000}})");
  std::filesystem::create_directory(folder.path() + "/traces");
  std::filesystem::copy(folder.path() + "/t.jsonl", folder.path() + "/traces/t.jsonl");
  std::filesystem::create_symlink("gpu.json", folder.path() + "/same.html");
  const std::string pools = "--policy disaggregated ";
  const std::string run = "simulate --trace t.jsonl --num-prompts 20 --quiet ";
  const std::string search =
      "simulate search --trace t.jsonl --num-prompts 20 --goodput ttft:500 --quiet ";
  const std::vector<std::string> refused{
      run + "--schedule-log t.jsonl",
      run + "--trace other.jsonl --json other.jsonl",
      "simulate --trace-set traces --num-prompts 20 --json traces/t.jsonl",
      "simulate --trace - --num-prompts 20 --json t.jsonl <t.jsonl",
      run + "--model model.json,llama-3-8b --json ./model.json",
      run + "--hardware gpu.json --report same.html",
      run + "--scenario scenario.json --json scenario.json",
      "simulate --trace t.jsonl --engine-config engine.json --json engine.json",
      run + pools + "--kv-link link.json --json link.json",
      run + pools + "--decode tensor-parallel-size=2,hardware=gpu.json --json gpu.json",
      search + "--export t.json --json t.jsonl",
      search + "--space space.json --json space.json",
      search + "--space space.json --export model.json",
      search + "--scenario scenario.json --export scenario.json",
      search + pools + "--prefill hardware=gpu.json --json gpu.json",
      "simulate size --model model.json --json model.json",
      "simulate size --hardware h100-pcie,gpu.json --json gpu.json",
      "simulate size --training --model model.json --json model.json",
      "simulate generate --spec spec.json --output spec.json",
      "SERVESIM_DATA=shipped " + run + "--json shipped/models/llm/llama-3.1-8b.json",
  };
  std::filesystem::create_directory(folder.path() + "/shipped");
  for (const char* name : {"models", "workloads"}) {
    std::filesystem::copy(std::string(SERVESIM_SOURCE_DIR) + "/" + name,
                          folder.path() + "/shipped/" + name,
                          std::filesystem::copy_options::recursive);
  }
  const auto names = folder.names();
  for (const std::string& command : refused) {
    const ProcessResult result = testing::shell(command, folder.path());
    INFO(command << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.error_lines() == 1);
    CHECK(result.err.find("would overwrite") != std::string::npos);
    CHECK(folder.names() == names);
  }
  CHECK(testing::shell(run + "--model model.json --json new.json", folder.path()).exit_code == 0);
}

TEST_CASE("a validation does not write into the folder it reads") {
  const TemporaryFolder folder;
  const ProcessResult result = testing::shell("simulate validate --data . --out .", folder.path());
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("the folder of --data") != std::string::npos);
}

TEST_CASE("an interrupt ends a program that waits for its trace") {
  const TemporaryFolder folder;
  const ProcessResult result = testing::shell(
      "mkfifo pipe; exec timeout -s INT 1 '" + testing::binary() + "' --trace pipe --json out.json",
      folder.path());
  CHECK(result.exit_code != 0);
  CHECK(folder.names() == std::vector<std::string>{"pipe"});
}

}  // namespace servesim
