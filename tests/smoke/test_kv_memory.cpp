/// Does the program show what paging, swapping and offloading buy, and refuse what cannot be?
#include <map>
#include <nlohmann/json.hpp>

#include "smoke/process.hpp"
#include "support/catch.hpp"
#include "support/shared.hpp"

namespace servesim {
namespace {

using nlohmann::json;
using testing::ProcessResult;
using testing::simulate;
using testing::TemporaryFolder;

std::string workload(const std::string& name) {
  return std::string(SERVESIM_SOURCE_DIR) + "/workloads/" + name + ".jsonl";
}

/// The runs of a command, by the value of a key of their `kv`.
std::map<std::string, json> runs_by(const std::string& key, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-", "--quiet"});
  const ProcessResult result = simulate(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::map<std::string, json> runs;
  const json document = json::parse(result.out);
  for (const json& run : document["runs"]) {
    const json& value = run["kv"][key];
    runs[value.is_string() ? value.get<std::string>() : value.dump()] = run;
  }
  return runs;
}

void check_shares(const json& shares, double used) {
  CHECK(used + shares["internal_fragmentation"].get<double>() +
            shares["reservation_waste"].get<double>() +
            shares["external_fragmentation"].get<double>() + shares["free"].get<double>() ==
        Approx(1).epsilon(1e-12));
  for (const char* name :
       {"internal_fragmentation", "reservation_waste", "external_fragmentation", "free"}) {
    CHECK(shares[name].get<double>() >= -1e-12);
  }
}

double figure(const json& run, const char* group, const char* name) {
  return run[group][name].get<double>();
}

void refused(std::vector<std::string> flags, const std::string& word) {
  std::vector<std::string> arguments{"--trace", workload("chat"), "--num-prompts", "10"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ProcessResult result = simulate(arguments);
  INFO(flags[0] << ' ' << flags[1] << ": " << result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.error_lines() == 1);
  CHECK(result.out.empty());
  CHECK(result.err.find(word) != std::string::npos);
}

}  // namespace

TEST_CASE("paging holds a multiple of what contiguous:max holds, the oracle comes close") {
  const std::optional<std::string> shared = testing::shared_dir();
  if (!shared) return;
  const std::string trace = *shared + "/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv";
  const auto runs = runs_by(
      "allocator", {"--trace", trace, "--hardware", "a100-sxm-80g", "--model", "llama-3.1-8b",
                    "--dtype", "float16", "--max-model-len", "16384", "--request-rate", "inf",
                    "--kv", "paged,contiguous:max,contiguous:pow2,contiguous:oracle"});
  REQUIRE(runs.size() == 4);
  for (const auto& [name, run] : runs) {
    INFO(name);
    check_shares(run["kv"], figure(run, "kv", "mean_used"));
    check_shares(run["kv"]["at_peak"], run["kv"]["at_peak"]["used"].get<double>());
    CHECK(run["requests"]["completed"] == 19366);
  }
  const auto batch = [&](const char* kv) {
    return figure(runs.at(kv), "engine", "mean_batch_size");
  };
  const auto rate = [&](const char* kv) { return runs.at(kv)["request_throughput"].get<double>(); };
  CHECK(batch("paged") > 5 * batch("contiguous:max"));
  CHECK(rate("paged") > 1.4 * rate("contiguous:max"));
  CHECK(rate("contiguous:oracle") > 0.97 * rate("paged"));
  CHECK(rate("contiguous:pow2") > rate("contiguous:max"));
  CHECK(figure(runs.at("contiguous:max"), "kv", "reservation_waste") > 0.8);
  CHECK(figure(runs.at("contiguous:pow2"), "kv", "copied_bytes") > 0);
  CHECK(figure(runs.at("contiguous:oracle"), "kv", "external_fragmentation") > 0);
  CHECK(figure(runs.at("paged"), "kv", "reservation_waste") == 0);
}

TEST_CASE("every policy runs on every allocator") {
  for (const char* policy : {"static", "continuous", "chunked"}) {
    const auto runs =
        runs_by("allocator", {"--trace", workload("chat"), "--num-prompts", "300", "--policy",
                              policy, "--max-model-len", "8192", "--request-rate", "inf", "--kv",
                              "paged,contiguous:max,contiguous:pow2,contiguous:oracle"});
    REQUIRE(runs.size() == 4);
    for (const auto& [name, run] : runs) {
      INFO(policy << ' ' << name);
      CHECK(run["requests"]["completed"] == 300);
      check_shares(run["kv"], figure(run, "kv", "mean_used"));
    }
  }
}

// Steps of equal length, so that an average over time is one over steps.
TEST_CASE("internal fragmentation grows with the block size as (block - 1)/2 slots a sequence") {
  const auto runs = runs_by(
      "block_size", {"--trace", workload("chat"), "--num-prompts", "2000", "--request-rate", "inf",
                     "--no-enable-prefix-caching", "--max-num-seqs", "128", "--step-time",
                     "linear:base_us=10000,per_token_us=0", "--block-size", "1,8,16,32,64,128"});
  REQUIRE(runs.size() == 6);
  for (const auto& [text, run] : runs) {
    const double block = std::stod(text);
    const double slots = figure(run, "kv", "internal_fragmentation") *
                         figure(run, "kv", "capacity_tokens") /
                         figure(run, "engine", "mean_batch_size");
    INFO("block size " << block);
    CHECK(slots == Approx((block - 1) / 2).epsilon(0.03).margin(1e-9));
  }
}

TEST_CASE("recompute, swap and stall on one trace are one command") {
  std::vector<std::string> command{"--trace",
                                   workload("chat"),
                                   "--num-prompts",
                                   "1500",
                                   "--request-rate",
                                   "inf",
                                   "--num-gpu-blocks-override",
                                   "6000",
                                   "--preemption-mode",
                                   "recompute,swap,stall",
                                   "--swap-space",
                                   "16",
                                   "--json",
                                   "-",
                                   "--quiet"};
  const ProcessResult mixed = simulate(command);
  CHECK(mixed.exit_code == 2);  // the swap space is nobody's business without swapping
  command.erase(command.end() - 5, command.end() - 3);
  const ProcessResult result = simulate(command);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::map<std::string, json> runs;
  const json document = json::parse(result.out);
  for (const json& run : document["runs"]) {
    runs[run["config"]["preemption_mode"].get<std::string>()] = run;
  }
  CHECK(figure(runs.at("recompute"), "kv", "preemptions") > 0);
  CHECK(figure(runs.at("recompute"), "kv", "recomputed_tokens") > 0);
  CHECK(figure(runs.at("swap"), "kv", "swapped_bytes") > 0);
  CHECK(figure(runs.at("swap"), "kv", "recomputed_tokens") <
        0.1 * figure(runs.at("recompute"), "kv", "recomputed_tokens"));
  CHECK(runs.at("swap")["engine"]["time_by_component_s"]["kv_transfer"].get<double>() > 0);
  CHECK(figure(runs.at("stall"), "kv", "preemptions") == 0);
}

TEST_CASE("a tier below HBM shortens prefills, and a slow one shows its price") {
  const auto mean_ttft = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{
        "--trace", workload("agentic"), "--num-prompts", "1000", "--num-gpu-blocks-override",
        "4000",    "--max-model-len",   "32768"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.end(), {"--json", "-", "--quiet"});
    const ProcessResult result = simulate(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out)["runs"][0];
  };
  const json none = mean_ttft({});
  CHECK(none["kv"]["offload"].is_null());
  const json fast = mean_ttft({"--kv-offload", "cpu:256GiB"});
  CHECK(fast["kv"]["offload"]["loaded_tokens"].get<double>() > 0);
  CHECK(fast["mean_ttft_ms"].get<double>() < none["mean_ttft_ms"].get<double>());
  const json slow = mean_ttft({"--kv-offload", "cpu:256GiB@100MB/s"});
  CHECK(slow["mean_ttft_ms"].get<double>() > fast["mean_ttft_ms"].get<double>());
}

TEST_CASE("impossible memory is refused in one line") {
  refused({"--kv", "contiguos:max"}, "contiguous:max");
  refused({"--kv", "contiguous:max", "--enable-prefix-caching"}, "paged");
  refused({"--kv", "contiguous:pow2", "--preemption-mode", "swap"}, "paged");
  refused({"--policy", "static", "--preemption-mode", "swap"}, "preempted");
  refused({"--preemption-mode", "drop"}, "recompute");
  refused({"--swap-space", "4"}, "--preemption-mode swap");
  refused({"--preemption-mode", "swap", "--swap-space", "0"}, "more than");
  refused({"--preemption-mode", "swap", "--swap-space", "-1"}, "--swap-space");
  refused({"--preemption-mode", "swap", "--swap-space", "0.000001"}, "holds no block");
  refused({"--kv-offload", "disk:1TiB"}, "unknown tier 'disk'");
  refused({"--kv-offload", "nvme:1TiB,cpu:64GiB"}, "cpu into nvme");
  refused({"--kv-offload", "cpu:64GiB,cpu:64GiB"}, "cpu into nvme");
  refused({"--kv-offload", "cpu"}, "no size");
  refused({"--kv-offload", "cpu:0GiB"}, "cpu");
  refused({"--kv-offload", "cpu:-5GiB"}, "cpu");
  refused({"--kv-offload", "cpu:64Gi"}, "GiB");
  refused({"--kv-offload", "cpu:1kB"}, "holds no block");
  refused({"--kv-offload", "cpu:64GiB@fast"}, "not a rate");
  refused({"--kv-offload", "cpu:64GiB,"}, "no size");
  refused({"--kv-offload", "cpu:64GiB", "--no-enable-prefix-caching"}, "prefix caching");
  refused({"--kv-offload", "cpu:64GiB", "--eviction", "random"}, "lru");
  refused({"--eviction", "lru"}, "--kv-offload");
  refused({"--block-size", "0"}, "--block-size");
}

}  // namespace servesim
