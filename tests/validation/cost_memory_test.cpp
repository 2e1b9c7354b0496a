// The number of KV blocks against what real vLLM servers reported.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/params.hpp"
#include "cost/memory_budget.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

struct Server {
  const char* folder;
  const char* model;
};
constexpr Server kServers[] = {{"qwen3-14b-h100-10rps", "qwen3-14b"},
                               {"llama-2-7b-tp1-general", "llama-2-7b"},
                               {"llama-2-70b-tp4-roleplay", "llama-2-70b"},
                               {"codellama-34b-tp2-general", "codellama-34b"},
                               {"mixtral-8x7b-v0-1-tp2-general", "mixtral-8x7b"}};
constexpr double kTolerance = 0.03;

std::int64_t whole(const nlohmann::json& config, const char* key, const char* other) {
  return config.contains(key) ? config.at(key).get<std::int64_t>()
                              : config.at(other).get<std::int64_t>();
}

}  // namespace

TEST_CASE("num_gpu_blocks of real servers", "[validation]") {
  const char* shared = std::getenv("SERVESIM_SHARED");
  const std::filesystem::path serving =
      std::filesystem::path(shared != nullptr ? shared : SERVESIM_SHARED_DIR) / "measured/serving";
  if (!std::filesystem::exists(serving)) {
    WARN("skipped: no measured servers");
    return;
  }
  const HardwareSpec gpu = load_hardware("h100-sxm");
  for (const Server& server : kServers) {
    const nlohmann::json config =
        read_json_file((serving / server.folder / "summary.json").string()).at("config");
    MemoryOptions options;
    options.tensor_parallel = whole(config, "tensor_parallelism", "tp");
    options.max_num_batched_tokens = config.at("max_num_batched_tokens").get<std::int64_t>();
    options.max_num_seqs = config.at("max_num_seqs").get<std::int64_t>();
    options.block_size = config.at("block_size").get<std::int64_t>();
    options.max_model_len = config.at("max_model_len").get<std::int64_t>();
    // The default of the vLLM release that ran (0.15.1) where the summary does not say.
    options.gpu_memory_utilization = config.value("gpu_memory_utilization", 0.9);
    const std::int64_t measured = whole(config, "num_gpu_blocks", "kv_blocks_total_gpu");
    const MemoryBudget budget = require_memory_budget(load_model(server.model), gpu, options);
    INFO(server.folder << ": " << budget.num_gpu_blocks << " blocks, measured " << measured);
    CHECK(std::abs(static_cast<double>(budget.num_gpu_blocks) / static_cast<double>(measured) - 1) <
          kTolerance);
  }
}
