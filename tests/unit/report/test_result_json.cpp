/// Does the result hold every key of schema servesim/result/v1, with the right numbers?
#include <nlohmann/json.hpp>

#include "report/result_json.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

RunResult sample() {
  RunResult r;
  r.trace = "chat.jsonl";
  r.policy = "chunked";
  r.model = "llama-3.1-8b";
  r.hardware = "h100-sxm";
  r.config = {{"block_size", 16}, {"hash", "00"}};
  r.kv = {"paged", 101, 16, 1600, 1600};
  r.replicas = 2;
  r.engine.steps = 10;
  r.engine.scheduled_seqs = 40;
  r.engine.busy = SimTime::from_ms(500);
  r.engine.flops = 1e12;
  r.engine.hbm_bytes = 1e12;
  r.engine.kv.used = 800;
  r.engine.kv.internal = 80;
  r.engine.kv.elapsed_s = 2;
  r.engine.kv_peak.allocated = 800;
  r.engine.prefix_hit_tokens = 30;
  r.engine.prefix_queried_tokens = 120;
  r.peak_flops = 1e13;
  r.peak_bytes_per_s = 1e12;
  r.metrics.total = 6;
  r.metrics.completed = 4;
  r.metrics.rejected = 2;
  r.metrics.duration_s = 1;
  r.metrics.total_input_tokens = 400;
  r.metrics.total_output_tokens = 100;
  r.metrics.ttft_ms = {4, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  r.warnings = {"careful"};
  return r;
}

nlohmann::ordered_json parsed() {
  return nlohmann::ordered_json::parse(result_json({sample()}, "simulate --trace x", 7));
}

}  // namespace

TEST_CASE("the document names its schema, command and seed") {
  const auto document = parsed();
  CHECK(document["schema"] == "servesim/result/v1");
  CHECK(document["version"].is_string());
  CHECK(document["command"] == "simulate --trace x");
  CHECK(document["seed"] == 7);
  CHECK(document["runs"].size() == 1);
}

TEST_CASE("a run has every key, in order") {
  std::vector<std::string> expected{"trace",
                                    "policy",
                                    "model",
                                    "hardware",
                                    "config",
                                    "requests",
                                    "duration",
                                    "completed",
                                    "total_input_tokens",
                                    "total_output_tokens",
                                    "request_throughput",
                                    "request_goodput",
                                    "output_throughput",
                                    "total_token_throughput"};
  for (const std::string metric : {"ttft", "tpot", "itl", "e2el"}) {
    for (const std::string figure : {"mean", "median", "std", "p90", "p95", "p99"}) {
      expected.push_back(figure + "_" + metric + "_ms");
    }
  }
  for (const std::string key : {"kv", "engine", "links", "warnings", "sim"})
    expected.push_back(key);
  std::vector<std::string> keys;
  const auto document = parsed();
  for (const auto& [key, value] : document["runs"][0].items()) keys.push_back(key);
  CHECK(keys == expected);
}

TEST_CASE("figures derived from sums") {
  const auto run = parsed()["runs"][0];
  CHECK(run["requests"]["total"] == 6);
  CHECK(run["request_throughput"] == 4.0);
  CHECK(run["output_throughput"] == 100.0);
  CHECK(run["total_token_throughput"] == 500.0);
  CHECK(run["request_goodput"].is_null());
  CHECK(run["mean_ttft_ms"] == 0.1);
  CHECK(run["mean_tpot_ms"].is_null());
  CHECK(run["kv"]["allocator"] == "paged");
  CHECK(run["kv"]["mean_used"] == 0.25);
  CHECK(run["kv"]["peak_used"] == 0.5);
  CHECK(run["kv"]["internal_fragmentation"] == 0.025);
  CHECK(run["kv"]["prefix_hit_rate"] == 0.25);
  CHECK(run["engine"]["mean_batch_size"] == 4.0);
  CHECK(run["engine"]["mean_step_ms"] == 50.0);
  CHECK(run["engine"]["busy_fraction"] == 0.25);
  CHECK(run["engine"]["mfu"] == 0.05);
  CHECK(run["engine"]["mbu"] == 0.5);
  CHECK(run["engine"]["time_by_component_s"].size() == kComponentCount);
  CHECK(run["warnings"][0] == "careful");
}

TEST_CASE("numbers are the shortest that read back exactly") {
  const std::string text = result_json({sample()}, "", 0);
  CHECK(text.find("\"mean_ttft_ms\": 0.1,") != std::string::npos);
  CHECK(text.back() == '\n');
}

}  // namespace servesim
