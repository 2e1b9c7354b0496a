// The part of the resolution that is about moving KV: its cost, the swap space, the tiers.
#include <fmt/format.h>

#include <utility>

#include "cli/kv_offload.hpp"
#include "cli/resolve_engine.hpp"
#include "core/error.hpp"

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

void resolve_offload(const RunSpec& spec, const CostModelFactory& make,
                     const Registries& registries, Resolver::Engine& engine) {
  SchedulerConfig& scheduler = engine.scheduler;
  if (!spec.kv_offload) {
    if (spec.eviction) throw InputError("--eviction needs --kv-offload, whose tiers it orders");
    return;
  }
  if (!scheduler.enable_prefix_caching) {
    throw InputError("--kv-offload needs prefix caching, whose evicted blocks it keeps");
  }
  scheduler.offload.order = registries.evictions.at(spec.eviction.value_or("lru"));
  scheduler.offload.tiers =
      parse_kv_offload(*spec.kv_offload, scheduler.moves, engine.inputs.deployment.tensor_parallel,
                       scheduler.block_size);
  scheduler.prefill_seconds = prefill_seconds_of(make(engine.inputs));
  engine.config["kv_offload"] = *spec.kv_offload;
  engine.config["eviction"] = spec.eviction.value_or("lru");
}

}  // namespace

void resolve_layer_groups(Resolver::Engine& engine, bool disaggregated,
                          std::vector<std::string>& warnings) {
  SchedulerConfig& scheduler = engine.scheduler;
  const ModelSpec& model = engine.inputs.model;
  if (model.windowed_layers == 0 || scheduler.max_model_len <= model.sliding_window) return;
  if (disaggregated || scheduler.enable_prefix_caching || scheduler.region_rule != nullptr) {
    std::string text = fmt::format(
        "{}: {} of {} layers see {} tokens, but keep the KV of all, as with vLLM's "
        "--disable-hybrid-kv-cache-manager",
        model.name, model.windowed_layers, model.layers, model.sliding_window);
    if (!disaggregated) {
      text += "; --kv paged --no-enable-prefix-caching frees the blocks behind the window";
    }
    if (warnings.empty() || warnings.back() != text)
      warnings.push_back(text);  // once for two pools
    return;
  }
  scheduler.layer_groups =
      group_layers(model.full_attention_layers(), model.windowed_layers, model.sliding_window);
}

void resolve_moves(const RunSpec& spec, const CostModelFactory& make, const Registries& registries,
                   Resolver::Engine& engine) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  constexpr double kDefaultSwapGiB = 4;  // vLLM's
  SchedulerConfig& scheduler = engine.scheduler;
  const CostInputs& inputs = engine.inputs;
  scheduler.moves = kv_move_costs(inputs.model, inputs.hardware, inputs.deployment);
  resolve_offload(spec, make, registries, engine);
  if (scheduler.preemption_mode != PreemptionMode::kSwap) return;
  if (scheduler.moves.host_bytes_per_s <= 0) {
    throw InputError(
        fmt::format("--preemption-mode swap: profile {} has no pcie rate", inputs.hardware.name));
  }
  const double block_bytes =
      scheduler.moves.bytes_per_token * static_cast<double>(scheduler.block_size);
  const double gib = spec.swap_space.value_or(kDefaultSwapGiB);
  scheduler.swap_blocks = static_cast<std::int64_t>(gib * kGiB / block_bytes);
  if (scheduler.swap_blocks == 0) {
    throw InputError(
        fmt::format("--swap-space {} GiB holds no block of {:.0f} bytes", gib, block_bytes));
  }
}

}  // namespace servesim
