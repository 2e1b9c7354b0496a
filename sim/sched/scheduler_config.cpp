#include "sched/scheduler_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "sched/batch_policy.hpp"

namespace servesim {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw InputError(message);
}

void require_positive(std::int64_t value, const char* name) {
  require(value >= 1, fmt::format("{} is {}; accepted: 1 or more", name, value));
}

/// Whether a pool of `num_gpu_blocks` has room for one sequence of `tokens`.
bool holds(const SchedulerConfig& config, std::int64_t num_gpu_blocks, std::int64_t tokens) {
  const KvDemand demand(BlockSize(config.block_size), config.layer_groups);
  return demand.blocks(tokens) <= config.layer_groups.pool_blocks(num_gpu_blocks - 1);
}

}  // namespace

bool holds_max_model_len(const SchedulerConfig& config, std::int64_t num_gpu_blocks) {
  return holds(config, num_gpu_blocks, config.max_model_len);
}

SchedulerConfig in_pool_units(SchedulerConfig config) {
  if (config.region_rule == nullptr) {
    const LayerGroups& groups = config.layer_groups;
    config.num_gpu_blocks = groups.pool_blocks(config.num_gpu_blocks - 1) + 1;
    config.swap_blocks = groups.pool_blocks(config.swap_blocks);
    config.moves.bytes_per_token *= groups.slot_share();
    return config;
  }
  config.num_gpu_blocks = (config.num_gpu_blocks - 1) * config.block_size + 1;
  config.block_size = 1;
  return config;
}

void validate(const SchedulerConfig& config) {
  require_positive(config.block_size, "block_size");
  require_positive(config.max_num_seqs, "max_num_seqs");
  require_positive(config.max_num_batched_tokens, "max_num_batched_tokens");
  require_positive(config.max_model_len, "max_model_len");
  require(config.num_gpu_blocks >= 2,
          fmt::format("num_gpu_blocks is {}; accepted: 2 or more (one of them is the null block)",
                      config.num_gpu_blocks));
  require(config.watermark >= 0 && config.watermark < 1,
          fmt::format("watermark is {}; accepted: from 0 to below 1", config.watermark));
  require(config.long_prefill_token_threshold >= 0,
          fmt::format("long_prefill_token_threshold is {}; accepted: 0 (off) or more",
                      config.long_prefill_token_threshold));
  require(config.max_num_batched_tokens >= config.max_num_seqs,
          fmt::format("max_num_batched_tokens ({}) is below max_num_seqs ({}); raise the one or "
                      "lower the other",
                      config.max_num_batched_tokens, config.max_num_seqs));
  require(
      config.enable_chunked_prefill || config.max_num_batched_tokens >= config.max_model_len,
      fmt::format(
          "without chunked prefill max_num_batched_tokens ({}) must be at least max_model_len ({})",
          config.max_num_batched_tokens, config.max_model_len));
  const SpeculativeConfig& spec = config.speculative;
  require(spec.method == SpeculativeMethod::kNone || spec.num_speculative_tokens >= 1,
          "speculative decoding needs num_speculative_tokens of 1 or more");
  require(spec.acceptance_rate >= 0 && spec.acceptance_rate <= 1,
          fmt::format("speculative acceptance rate is {}; accepted: 0 to 1", spec.acceptance_rate));
  require(config.region_rule == nullptr || !config.enable_prefix_caching,
          "prefix caching needs paged KV: contiguous regions cannot be shared");
  require(config.region_rule == nullptr || spec.method == SpeculativeMethod::kNone,
          "speculative decoding needs paged KV");
  require(config.layer_groups.windowed == 0 ||
              (!config.enable_prefix_caching && config.region_rule == nullptr),
          "layers that free blocks behind a window need paged KV without prefix caching");
  require(config.preemption_mode != PreemptionMode::kSwap || config.region_rule == nullptr,
          "preemption mode swap needs paged KV: it moves blocks");
  require(config.offload.tiers.empty() || config.enable_prefix_caching,
          "KV offload needs prefix caching: its tiers keep evicted prefix blocks");
  require(config.swap_blocks >= 0, "the swap space must not be negative");
  require(config.pipeline_parallel >= 1 && config.pipeline_parallel <= kMostPipelineStages,
          fmt::format("pipeline_parallel is {}; accepted: 1 to {}", config.pipeline_parallel,
                      kMostPipelineStages));
  const bool plain = !config.async_scheduling && spec.method == SpeculativeMethod::kNone &&
                     config.preemption_mode != PreemptionMode::kSwap &&
                     config.offload.tiers.empty();
  require(config.pipeline_parallel == 1 || plain,
          "a pipeline goes without asynchronous scheduling, speculative decoding, preemption by "
          "swapping and KV offload");
}

std::string_view rejection_reason(const SchedulerConfig& config, std::int64_t prompt,
                                  std::int64_t max_tokens) {
  if (prompt <= 0) return "zero input tokens";
  if (max_tokens <= 0) return "zero output tokens";
  const std::int64_t limit = config.max_model_len;
  const std::int64_t total = prompt + max_tokens;
  if (prompt >= limit || (total > limit && !config.truncate_at_max_model_len)) {
    return "longer than max_model_len";
  }
  // The KV of the last token is never needed; drafts can be done without, lookahead slots cannot.
  const std::int64_t slots = std::min(std::min(total, limit) - 1 + config.lookahead(), limit);
  return holds(config, config.num_gpu_blocks, slots) ? "" : "longer than the KV pool";
}

}  // namespace servesim
