/// Do runs resolve to vLLM's defaults, and are contradictions refused?
#include <filesystem>
#include <fstream>
#include <functional>

#include "cli/engine_config.hpp"
#include "cli/resolve.hpp"
#include "cli/step_time.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

ResolvedRun resolved(const RunSpec& spec, const GoodputTargets& targets = {}) {
  static const Registries registries = [] {
    Registries all;
    register_builtins(all);
    return all;
  }();
  return Resolver(registries).resolve(spec, targets);
}

RunSpec with_policy(const std::string& policy) {
  RunSpec spec;
  spec.policy = policy;
  return spec;
}

/// A file that goes away with the object.
struct ConfigFile {
  explicit ConfigFile(const std::string& text)
      : path((std::filesystem::temp_directory_path() / "servesim_engine_config.json").string()) {
    std::ofstream(path) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path); }
  std::string path;
};

void check_config_refused(const std::string& text, const std::string& word) {
  const ConfigFile file(text);
  try {
    load_engine_config(file.path);
    FAIL("accepted: " << text);
  } catch (const InputError& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("defaults are those of vLLM's API server on an H100") {
  const ResolvedRun run = resolved(RunSpec{});
  const SchedulerConfig& s = run.cluster.scheduler;
  CHECK(run.policy == "chunked");
  CHECK(run.kv == "paged");
  CHECK(run.model == "llama-3.1-8b");
  CHECK(run.hardware == "h100-sxm");
  CHECK(s.max_model_len == 131072);
  CHECK(s.max_num_batched_tokens == 8192);
  CHECK(s.max_num_seqs == 1024);
  CHECK(s.block_size == 16);
  CHECK(s.enable_prefix_caching);
  CHECK(s.enable_chunked_prefill);
  CHECK(s.async_scheduling);
  CHECK(s.num_gpu_blocks > 20'000);
  CHECK(run.cluster.host.step > SimTime());
  CHECK(run.kv_facts.capacity_tokens == (s.num_gpu_blocks - 1) * 16);
}

TEST_CASE("without chunked prefill the token budget covers a whole prompt") {
  const SchedulerConfig s = resolved(with_policy("continuous")).cluster.scheduler;
  CHECK_FALSE(s.enable_chunked_prefill);
  CHECK(s.max_num_batched_tokens == 131072);
}

TEST_CASE("static batching has none of vLLM's mechanisms") {
  const SchedulerConfig s = resolved(with_policy("static")).cluster.scheduler;
  CHECK_FALSE(s.async_scheduling);
  CHECK_FALSE(s.enable_prefix_caching);
}

TEST_CASE("layers with a window share the pool in groups, unless prefixes are cached") {
  RunSpec spec;
  spec.model = "gpt-oss-20b";
  const ResolvedRun cached = resolved(spec);
  CHECK(cached.cluster.scheduler.layer_groups.windowed == 0);
  CHECK_FALSE(cached.config.contains("layer_groups"));
  REQUIRE(cached.warnings.size() == 1);
  CHECK(cached.warnings[0].find("--no-enable-prefix-caching") != std::string::npos);
  spec.enable_prefix_caching = false;
  const ResolvedRun hybrid = resolved(spec);
  const LayerGroups& groups = hybrid.cluster.scheduler.layer_groups;
  CHECK(hybrid.warnings.empty());
  spec.policy = "disaggregated";  // KV that is sent elsewhere is kept whole
  CHECK(resolved(spec).warnings.size() == 1);
  spec.policy.reset();
  CHECK(groups.full == 1);
  CHECK(groups.windowed == 1);
  CHECK(groups.window == 128);
  CHECK(hybrid.config["layer_groups"]["layers_per_group"] == 12);
  CHECK(hybrid.kv_facts.capacity_tokens == cached.kv_facts.capacity_tokens);
  CHECK(hybrid.kv_facts.capacity_slots == 2 * hybrid.kv_facts.capacity_tokens);
  CHECK(hybrid.kv_facts.bytes_per_slot == Approx(cached.kv_facts.bytes_per_slot / 2));
  spec.kv = "contiguous:max";
  CHECK(resolved(spec).cluster.scheduler.layer_groups.windowed == 0);
  CHECK(resolved(spec).warnings.size() == 1);
  spec.kv = "paged";
  spec.max_model_len = 128;  // no window is ever full
  CHECK(resolved(spec).cluster.scheduler.layer_groups.windowed == 0);
}

TEST_CASE("a model whose windows fit starts where its full length would not") {
  RunSpec spec;
  spec.model = "mistral-7b-v0.1";
  spec.hardware = "h100-sxm";
  spec.gpu_memory_utilization = 0.22;  // 18.9 GB, of which 14.5 for weights; 32768 tokens are 4.3
  CHECK_THROWS_AS(resolved(spec), InputError);
  spec.enable_prefix_caching = false;
  const ResolvedRun run = resolved(spec);
  CHECK(run.kv_facts.capacity_tokens < run.cluster.scheduler.max_model_len);
  CHECK(run.warnings.empty());
  spec.gpu_memory_utilization = 0.18;
  CHECK_THROWS_AS(resolved(spec), InputError);
}

TEST_CASE("sequences not given are never more than the token budget") {
  RunSpec spec;
  spec.max_num_batched_tokens = 256;
  CHECK(resolved(spec).cluster.scheduler.max_num_seqs == 256);
  spec.max_num_seqs = 512;
  CHECK_THROWS_AS(resolved(spec), InputError);
}

TEST_CASE("n-gram drafting turns asynchronous scheduling off") {
  RunSpec spec;
  spec.speculative_method = "ngram";
  spec.num_speculative_tokens = 3;
  spec.speculative_acceptance_rate = 0.5;
  CHECK_FALSE(resolved(spec).cluster.scheduler.async_scheduling);
  spec.speculative_method = "eagle";
  CHECK(resolved(spec).cluster.scheduler.async_scheduling);
  CHECK(resolved(spec).cluster.scheduler.lookahead() == 3);
}

TEST_CASE("a linear step time has no host") {
  RunSpec spec;
  spec.step_time = "linear:base_us=1000,per_token_us=10";
  const ResolvedRun run = resolved(spec);
  CHECK(run.cluster.host.step == SimTime());
  CHECK(run.cluster.host.front_before == SimTime());
  StepShape shape;
  shape.decode_seqs = shape.decode_tokens = 3;
  CHECK(run.parts.make_cost_model()->price(shape, {}).total == SimTime::from_us(1030));
}

TEST_CASE("fewer KV heads leave room for more blocks") {
  RunSpec spec;
  spec.num_kv_heads = 1;
  const ResolvedRun mqa = resolved(spec);
  const ResolvedRun own = resolved(RunSpec{});
  CHECK(mqa.cluster.scheduler.num_gpu_blocks >= 8 * own.cluster.scheduler.num_gpu_blocks);
  CHECK(mqa.config["num_kv_heads"] == 1);
  CHECK_FALSE(own.config.contains("num_kv_heads"));
  CHECK(mqa.config["hash"] != own.config["hash"]);
  spec.num_kv_heads = 5;
  CHECK_THROWS_AS(resolved(spec), InputError);
  spec.num_kv_heads = 1;
  spec.model = "deepseek-v3";
  CHECK_THROWS_AS(resolved(spec), InputError);
}

TEST_CASE("step times that are none") {
  CHECK(parse_step_time("linear:per_token_us=2").base_us == 0);
  CHECK(parse_step_time("roofline").text() == "roofline");
  for (const char* text :
       {"", "line", "linear", "linear:", "linear:base_us", "linear:base_us=x", "linear:base_us=-1",
        "linear:base_us=1,base_us=2", "linear:base_us=0,per_token_us=0", "linear:base_us=nan"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_step_time(text), InputError);
  }
}

TEST_CASE("a pipeline has its batches in flight, its memory and its GPUs") {
  RunSpec spec;
  spec.model = "llama-2-70b";
  spec.tensor_parallel_size = 4;
  const ResolvedRun whole = resolved(spec);
  CHECK(whole.cluster.scheduler.async_scheduling);
  spec.pipeline_parallel_size = 2;
  const ResolvedRun run = resolved(spec);
  CHECK_FALSE(run.cluster.scheduler.async_scheduling);
  CHECK(run.cluster.scheduler.pipeline_parallel == 2);
  CHECK(run.gpus() == 8);
  CHECK(run.config["pipeline_parallel_size"] == 2);
  // Half of the weights and half of each token's KV on a GPU.
  CHECK(run.cluster.scheduler.num_gpu_blocks > 2 * whole.cluster.scheduler.num_gpu_blocks);
  CHECK(run.parts.make_cost_model()->stages(StepCost{}).size() == 2);
}

TEST_CASE("what a pipeline does not go with is refused") {
  RunSpec pipeline;
  pipeline.pipeline_parallel_size = 2;
  const std::vector<std::function<void(RunSpec&)>> changes{
      [](RunSpec& s) { s.policy = "static"; },
      [](RunSpec& s) { s.policy = "disaggregated"; },
      [](RunSpec& s) { s.async_scheduling = true; },
      [](RunSpec& s) { s.preemption_mode = "swap"; },
      [](RunSpec& s) { s.kv_offload = "cpu:1GiB"; },
      [](RunSpec& s) { s.pipeline_parallel_size = 33; },  // of 32 layers
      [](RunSpec& s) {
        s.speculative_method = "ngram";
        s.num_speculative_tokens = 2;
        s.speculative_acceptance_rate = 0.5;
      }};
  CHECK_NOTHROW(resolved(pipeline));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    RunSpec spec = pipeline;
    changes[i](spec);
    CHECK_THROWS_AS(resolved(spec), InputError);
  }
}

TEST_CASE("contradictions") {
  RunSpec spec = with_policy("chunked");
  spec.enable_chunked_prefill = false;
  CHECK_THROWS_AS(resolved(spec), InputError);
  spec = with_policy("continuous");
  spec.enable_chunked_prefill = true;
  CHECK_THROWS_AS(resolved(spec), InputError);
  spec = with_policy("static");
  spec.async_scheduling = true;
  CHECK_THROWS_AS(resolved(spec), InputError);
  spec = RunSpec{};
  spec.max_model_len = 131073;
  CHECK_THROWS_AS(resolved(spec), InputError);
  spec = RunSpec{};
  spec.time_scale = 2;
  spec.request_rate = "5";
  CHECK_THROWS_AS(resolved(spec), InputError);
  spec = RunSpec{};
  spec.model = "llama-3.1-405b";
  CHECK_THROWS_AS(resolved(spec), InputError);
}

TEST_CASE("the hash names all that can change the result, and nothing else") {
  RunSpec spec;
  const auto hash = [&] { return resolved(spec).config["hash"].get<std::string>(); };
  const std::string plain = hash();
  CHECK(plain.size() == 32);
  spec.trace = "/some/where.jsonl";
  CHECK(hash() == plain);
  spec.max_num_seqs = 1024;  // the default, said aloud
  CHECK(hash() == plain);
  spec.max_num_seqs = 1023;
  CHECK(hash() != plain);
  spec.max_num_seqs.reset();
  spec.seed = 1;
  CHECK(hash() != plain);
}

TEST_CASE("a model is the same by its name, its file and its folder") {
  namespace fs = std::filesystem;
  RunSpec spec;
  spec.model = "llama-3-8b";
  const nlohmann::json named = resolved(spec).config;
  const fs::path folder = fs::temp_directory_path() / "servesim_model_folder";
  fs::create_directories(folder);
  const std::string shipped = std::string(SERVESIM_SOURCE_DIR) + "/models/llm/llama-3-8b.json";
  fs::copy_file(shipped, folder / "config.json", fs::copy_options::overwrite_existing);
  for (const std::string& path : {shipped, folder.string(), (folder / "config.json").string()}) {
    spec.model = path;
    CHECK(resolved(spec).config["model_hash"] == named["model_hash"]);
  }
  fs::remove_all(folder);
  CHECK(named["model_hash"].get<std::string>().size() == 32);
  CHECK(named["hardware_hash"].get<std::string>().size() == 32);
}

TEST_CASE("an engine configuration") {
  const ConfigFile file(
      R"({"num_gpu_blocks": 14, "max_num_seqs": 2, "max_num_batched_tokens": 256,
          "max_model_len": 128, "policy": "priority", "enable_chunked_prefill": false,
          "watermark": 0.1, "async_scheduling": true, "spec": {"k": 5, "method": "eagle"},
          "step_us": {"base": 1000, "per_token": 7}})");
  RunSpec spec;
  spec.engine_config = file.path;
  const ResolvedRun run = resolved(spec);
  const SchedulerConfig& s = run.cluster.scheduler;
  CHECK(run.policy == "continuous");
  CHECK(run.trace.format == "schedule-case");
  CHECK(s.num_gpu_blocks == 14);
  CHECK(s.block_size == 16);
  CHECK(s.truncate_at_max_model_len);
  CHECK(s.scheduling_policy == SchedulingPolicy::kPriority);
  CHECK(s.speculative.deterministic_acceptance);
  CHECK(s.lookahead() == 5);
  CHECK(run.cluster.host.step == SimTime());
}

TEST_CASE("engine configurations that are none") {
  const std::string step = R"("step_us": {"base": 1000})";
  check_config_refused("{" + step + "}", "num_gpu_blocks");
  check_config_refused(R"({"num_gpu_blocks": 14})", "step_us");
  check_config_refused(R"({"num_gpu_blocks": 1, )" + step + "}", "num_gpu_blocks");
  check_config_refused(R"({"num_gpu_blocks": 14, "blok_size": 4, )" + step + "}", "'block_size'");
  check_config_refused(R"({"num_gpu_blocks": 14, "max_num_seqs": 4096, )" + step + "}",
                       "max_num_seqs");
  check_config_refused(R"({"num_gpu_blocks": 14, "enable_chunked_prefill": false, )" + step + "}",
                       "max_model_len");
  check_config_refused(
      R"({"num_gpu_blocks": 14, "spec": {"k": 0, "method": "ngram"}, )" + step + "}", "k");
  check_config_refused(R"({"num_gpu_blocks": 14.5, )" + step + "}", "whole number");
}

TEST_CASE("goodput targets") {
  const GoodputTargets targets = parse_goodput({"ttft:500", "tpot:50.5"});
  CHECK(targets.ttft_ms == 500);
  CHECK(targets.tpot_ms == 50.5);
  CHECK_FALSE(targets.e2el_ms);
  for (const char* word : {"ttft", "ttft:", "ttft:x", "ttft:-1", "itl:5", ":5"}) {
    INFO(word);
    CHECK_THROWS_AS(parse_goodput({word}), InputError);
  }
  CHECK_THROWS_AS(parse_goodput({"ttft:1", "ttft:2"}), InputError);
}

}  // namespace servesim
