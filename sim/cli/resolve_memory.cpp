// The part of the resolution that is about KV memory: blocks, the cost of moving them, tiers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/kv_offload.hpp"
#include "cli/resolve.hpp"
#include "core/error.hpp"
#include "cost/memory_budget.hpp"

namespace servesim {
namespace {

/// What computing a piece of a prompt adds to a step: its price beside that of one token.
std::function<double(std::int64_t, std::int64_t)> prefill_seconds_of(
    std::shared_ptr<StepCostModel> cost) {
  return [cost = std::move(cost)](std::int64_t tokens, std::int64_t context) {
    const auto price = [&](std::int64_t n, std::int64_t past) {
      const PrefillChunk chunk{n, past};
      return cost->price({0, 0, 0, {&chunk, 1}, 1, {}}, Heat{}).total.seconds();
    };
    return price(tokens + 1, context) - price(1, context + tokens);
  };
}

}  // namespace

/// Layers with a window free the blocks behind it where vLLM's hybrid KV cache manager is modelled:
/// in a paged pool without prefix caching.
void Resolver::resolve_layer_groups(const CostInputs& inputs, ResolvedRun& run) {
  SchedulerConfig& scheduler = run.cluster.scheduler;
  const ModelSpec& model = inputs.model;
  if (model.windowed_layers == 0 || scheduler.max_model_len <= model.sliding_window) return;
  if (scheduler.enable_prefix_caching || scheduler.region_rule != nullptr) {
    run.warnings.push_back(fmt::format(
        "{}: {} of {} layers see {} tokens, but keep the KV of all, as with vLLM's "
        "--disable-hybrid-kv-cache-manager; --kv paged --no-enable-prefix-caching frees the blocks "
        "behind the window",
        run.model, model.windowed_layers, model.layers, model.sliding_window));
    return;
  }
  scheduler.layer_groups =
      group_layers(model.full_attention_layers(), model.windowed_layers, model.sliding_window);
  const LayerGroups& groups = scheduler.layer_groups;
  run.config["layer_groups"] = {{"full", groups.full},
                                {"windowed", groups.windowed},
                                {"window", groups.window},
                                {"layers_per_group", groups.size}};
}

void Resolver::resolve_blocks(const RunSpec& spec, const CostInputs& inputs, ResolvedRun& run) {
  SchedulerConfig& scheduler = run.cluster.scheduler;
  MemoryOptions options;
  options.weights = inputs.deployment.weights;
  options.kv = inputs.deployment.kv;
  options.tensor_parallel = inputs.deployment.tensor_parallel;
  options.gpu_memory_utilization = spec.gpu_memory_utilization.value_or(0.92);
  options.max_num_batched_tokens = scheduler.max_num_batched_tokens;
  options.max_num_seqs = scheduler.max_num_seqs;
  options.block_size = scheduler.block_size;
  options.max_model_len = scheduler.max_model_len;
  const std::int64_t room = memory_budget(inputs.model, inputs.hardware, options).num_gpu_blocks;
  if (!spec.num_gpu_blocks_override) {
    // The budget knows no windows; a pool that is too small without them may do with them.
    const bool fits_by_windows =
        scheduler.layer_groups.windowed > 0 && room >= 2 && holds_max_model_len(scheduler, room);
    if (!fits_by_windows) require_memory_budget(inputs.model, inputs.hardware, options);
    scheduler.num_gpu_blocks = room;
    return;
  }
  scheduler.num_gpu_blocks = *spec.num_gpu_blocks_override;
  if (scheduler.num_gpu_blocks > room) {
    run.warnings.push_back(
        fmt::format("--num-gpu-blocks-override {}: the memory of {} has room for {} blocks",
                    scheduler.num_gpu_blocks, run.hardware, std::max<std::int64_t>(room, 0)));
  }
}

void Resolver::resolve_offload(const RunSpec& spec, const CostInputs& inputs,
                               const std::string& step_time, ResolvedRun& run) {
  SchedulerConfig& scheduler = run.cluster.scheduler;
  if (!spec.kv_offload) {
    if (spec.eviction) throw InputError("--eviction needs --kv-offload, whose tiers it orders");
    return;
  }
  if (!scheduler.enable_prefix_caching) {
    throw InputError("--kv-offload needs prefix caching, whose evicted blocks it keeps");
  }
  scheduler.offload.order = registries_.evictions.at(spec.eviction.value_or("lru"));
  scheduler.offload.tiers = parse_kv_offload(
      *spec.kv_offload, scheduler.moves, inputs.deployment.tensor_parallel, scheduler.block_size);
  run.kv_facts.offloads = true;
  scheduler.prefill_seconds = prefill_seconds_of(registries_.cost_models.at(step_time)(inputs));
  run.config["kv_offload"] = *spec.kv_offload;
  run.config["eviction"] = spec.eviction.value_or("lru");
}

/// What moving KV costs, and how many blocks the swap space holds.
void Resolver::resolve_moves(const RunSpec& spec, const CostInputs& inputs,
                             const std::string& step_time, ResolvedRun& run) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  constexpr double kDefaultSwapGiB = 4;  // vLLM's
  SchedulerConfig& scheduler = run.cluster.scheduler;
  const DeploymentSpec& deployment = inputs.deployment;
  scheduler.moves = kv_move_costs(inputs.model, inputs.hardware, deployment);
  run.kv_facts.bytes_per_slot = scheduler.moves.bytes_per_token *
                                static_cast<double>(deployment.tensor_parallel) *
                                scheduler.layer_groups.slot_share();
  resolve_offload(spec, inputs, step_time, run);
  if (scheduler.preemption_mode != PreemptionMode::kSwap) return;
  if (scheduler.moves.host_bytes_per_s <= 0) {
    throw InputError(
        fmt::format("--preemption-mode swap: profile {} has no pcie rate", run.hardware));
  }
  const double block_bytes =
      scheduler.moves.bytes_per_token * static_cast<double>(scheduler.block_size);
  const double space = spec.swap_space.value_or(kDefaultSwapGiB) * kGiB;
  scheduler.swap_blocks = static_cast<std::int64_t>(space / block_bytes);
  if (scheduler.swap_blocks == 0) {
    throw InputError(fmt::format("--swap-space {} GiB holds no block of {:.0f} bytes",
                                 *spec.swap_space, block_bytes));
  }
}

}  // namespace servesim
