#include "cost/memory_budget.hpp"

#include "core/error.hpp"
#include "cost/server_defaults.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

std::string refusal(const std::string& model, const std::string& gpu,
                    const MemoryOptions& options) {
  try {
    require_memory_budget(load_model(model), load_hardware(gpu), options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the terms of a memory budget add up", "[cost]") {
  MemoryOptions options;
  const MemoryBudget budget =
      require_memory_budget(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), options);
  CHECK(budget.requested_bytes == Approx(0.92 * 85520809984.0));
  CHECK(budget.requested_bytes == Approx(budget.weight_bytes + budget.activation_bytes +
                                         budget.overhead_bytes + budget.available_bytes));
  CHECK(budget.weight_bytes == Approx(2 * 8030261248.0));
  CHECK(budget.kv_bytes_per_token == 131072);
  CHECK(budget.num_gpu_blocks ==
        static_cast<std::int64_t>(budget.available_bytes / (16 * 131072.0)));
  CHECK(budget.capacity_tokens == 16 * budget.num_gpu_blocks);
  CHECK(budget.describe().size() == 7);
}

TEST_CASE("parallelism and quantisation leave more for KV", "[cost]") {
  const ModelSpec model = load_model("llama-3.1-70b");
  const HardwareSpec gpu = load_hardware("h100-sxm");
  MemoryOptions options;
  options.tensor_parallel = 4;
  const MemoryBudget tp4 = memory_budget(model, gpu, options);
  options.tensor_parallel = 8;
  const MemoryBudget tp8 = memory_budget(model, gpu, options);
  CHECK(tp8.capacity_tokens > 2 * tp4.capacity_tokens);
  options.tensor_parallel = 4;
  options.weights = WeightFormat::kFp8;
  const MemoryBudget fp8 = memory_budget(model, gpu, options);
  CHECK(fp8.capacity_tokens > tp4.capacity_tokens);
  options.kv = KvFormat::kFp8;
  CHECK(memory_budget(model, gpu, options).capacity_tokens >= 2 * fp8.capacity_tokens - 32);
  options = MemoryOptions{};
  options.pipeline_parallel = 4;
  const MemoryBudget pp4 = memory_budget(model, gpu, options);
  CHECK(pp4.weight_bytes == Approx(tp4.weight_bytes).epsilon(0.05));
  CHECK(pp4.kv_bytes_per_token == Approx(tp4.kv_bytes_per_token));
}

TEST_CASE("a model that does not fit is refused with the arithmetic and remedies", "[cost]") {
  const std::string text = refusal("llama-3.1-70b", "h100-sxm", MemoryOptions{});
  CHECK(contains(text, "141.11 GB"));
  CHECK(contains(text, "85.52 GB"));
  CHECK(contains(text, "--tensor-parallel-size 4"));
  CHECK_FALSE(contains(text, "\n"));
  CHECK(contains(refusal("llama-3.1-405b", "h100-sxm", MemoryOptions{}), "no single change"));
}

TEST_CASE("a KV cache smaller than one request is refused with the longest that fits", "[cost]") {
  MemoryOptions options;
  options.gpu_memory_utilization = 0.4;
  const MemoryBudget budget =
      memory_budget(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), options);
  REQUIRE(budget.num_gpu_blocks > 0);
  REQUIRE_FALSE(budget.fits());
  const std::string text = refusal("llama-3.1-8b", "h100-sxm", options);
  CHECK(contains(text, "--max-model-len"));
  CHECK(contains(text, std::to_string(budget.capacity_tokens)));
  CHECK(contains(text, "--gpu-memory-utilization 0.92"));
  options.max_model_len = budget.capacity_tokens;
  CHECK(refusal("llama-3.1-8b", "h100-sxm", options).empty());
}

TEST_CASE("options out of range are refused", "[cost]") {
  const auto refused = [](auto change) {
    MemoryOptions options;
    change(options);
    return !refusal("llama-3.1-8b", "h100-sxm", options).empty();
  };
  CHECK(refused([](MemoryOptions& o) { o.gpu_memory_utilization = 0; }));
  CHECK(refused([](MemoryOptions& o) { o.gpu_memory_utilization = 1.1; }));
  CHECK(refused([](MemoryOptions& o) { o.block_size = 0; }));
  CHECK(refused([](MemoryOptions& o) { o.max_num_seqs = 0; }));
  CHECK(refused([](MemoryOptions& o) { o.max_num_batched_tokens = -1; }));
  CHECK(refused([](MemoryOptions& o) { o.tensor_parallel = 3; }));
  CHECK(refused([](MemoryOptions& o) { o.pipeline_parallel = 33; }));
  CHECK(refused([](MemoryOptions& o) { o.max_model_len = 131073; }));
}

TEST_CASE("server defaults follow the GPU's memory", "[cost]") {
  const auto defaults = [](const char* name) {
    const HardwareSpec gpu = load_hardware(name);
    return server_defaults(gpu.memory_bytes, gpu.is_a100());
  };
  CHECK(defaults("h100-sxm").max_num_batched_tokens == 8192);
  CHECK(defaults("h100-sxm").max_num_seqs == 1024);
  CHECK(defaults("a100-sxm-80g").max_num_batched_tokens == 2048);
  CHECK(defaults("a100-sxm-80g").max_num_seqs == 256);
  CHECK(defaults("b200").max_num_batched_tokens == 16384);
  CHECK(defaults("l40s").max_num_seqs == 256);
}
