#include "cli/resolve_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/scheduler_settings.hpp"
#include "cli/step_time.hpp"
#include "core/error.hpp"
#include "cost/memory_budget.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"

namespace servesim {
namespace {

constexpr std::string_view kDefaultModel = "llama-3.1-8b";
constexpr std::string_view kDefaultHardware = "h100-sxm";

nlohmann::json speculative_json(const SpeculativeConfig& speculative) {
  if (speculative.method == SpeculativeMethod::kNone) return nullptr;
  nlohmann::json json{
      {"method", speculative.method == SpeculativeMethod::kNgram ? "ngram" : "eagle"},
      {"num_speculative_tokens", speculative.num_speculative_tokens}};
  if (speculative.deterministic_acceptance) {
    json["acceptance"] = "deterministic";
  } else {
    json["acceptance_rate"] = speculative.acceptance_rate;
  }
  return json;
}

std::string_view preemption_name(PreemptionMode mode) {
  switch (mode) {
    case PreemptionMode::kRecompute:
      return "recompute";
    case PreemptionMode::kSwap:
      return "swap";
    case PreemptionMode::kStall:
      return "stall";
  }
  return "";
}

HostTimes host_times(const HostParameters& host) {
  const auto from_ms = [](double ms) { return SimTime::from_seconds(ms / 1000); };
  return {from_ms(host.step_ms), from_ms(host.front_end_before_ms),
          from_ms(host.front_end_after_ms)};
}

std::int64_t resolve_blocks(const RunSpec& spec, const CostInputs& inputs,
                            const SchedulerConfig& scheduler, std::vector<std::string>& warnings) {
  MemoryOptions options;
  options.weights = inputs.deployment.weights;
  options.kv = inputs.deployment.kv;
  options.tensor_parallel = inputs.deployment.tensor_parallel;
  options.pipeline_parallel = inputs.deployment.pipeline_parallel;
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
    return room;
  }
  if (*spec.num_gpu_blocks_override > room) {
    warnings.push_back(fmt::format(
        "--num-gpu-blocks-override {}: the memory of {} has room for {} blocks",
        *spec.num_gpu_blocks_override, inputs.hardware.name, std::max<std::int64_t>(room, 0)));
  }
  return *spec.num_gpu_blocks_override;
}

DeploymentSpec deployment_of(const RunSpec& spec) {
  DeploymentSpec deployment;
  deployment.tensor_parallel = spec.tensor_parallel_size.value_or(1);
  deployment.pipeline_parallel = spec.pipeline_parallel_size.value_or(1);
  deployment.weights = parse_weight_format(spec.quantization.value_or("none"));
  deployment.kv = parse_kv_format(spec.kv_cache_dtype.value_or("auto"));
  deployment.attention = parse_attention_kind(spec.attention.value_or("flash"));
  deployment.attention_top_k = spec.attention_top_k.value_or(0);
  if (spec.speculative_method == "eagle") {
    deployment.draft_tokens = spec.num_speculative_tokens.value_or(0);
  }
  return deployment;
}

}  // namespace

nlohmann::json scheduler_json(const SchedulerConfig& s) {
  return {
      {"block_size", s.block_size},
      {"num_gpu_blocks", s.num_gpu_blocks},
      {"max_model_len", s.max_model_len},
      {"max_num_seqs", s.max_num_seqs},
      {"max_num_batched_tokens", s.max_num_batched_tokens},
      {"long_prefill_token_threshold", s.long_prefill_token_threshold},
      {"watermark", s.watermark},
      {"enable_prefix_caching", s.enable_prefix_caching},
      {"enable_chunked_prefill", s.enable_chunked_prefill},
      {"async_scheduling", s.async_scheduling},
      {"scheduler_reserve_full_isl", s.scheduler_reserve_full_isl},
      {"truncate_at_max_model_len", s.truncate_at_max_model_len},
      {"preemption_mode", preemption_name(s.preemption_mode)},
      {"swap_blocks", s.swap_blocks},
      {"scheduling_policy", s.scheduling_policy == SchedulingPolicy::kFcfs ? "fcfs" : "priority"},
      {"speculative", speculative_json(s.speculative)}};
}

nlohmann::json host_json(const HostTimes& host) {
  return {{"step", host.step.ns()},
          {"front_end_before", host.front_before.ns()},
          {"front_end_after", host.front_after.ns()}};
}

KvFacts kv_facts_of(const std::string& allocator, const SchedulerConfig& scheduler,
                    std::int64_t tensor_parallel) {
  return {allocator,
          scheduler.num_gpu_blocks,
          scheduler.block_size,
          (scheduler.num_gpu_blocks - 1) * scheduler.block_size,
          scheduler.layer_groups.pool_blocks(scheduler.num_gpu_blocks - 1) * scheduler.block_size,
          scheduler.moves.bytes_per_token * static_cast<double>(tensor_parallel) *
              scheduler.layer_groups.slot_share(),
          !scheduler.offload.tiers.empty()};
}

const ModelSpec& Resolver::model(const std::string& name) {
  const auto found = models_.find(name);
  return found != models_.end() ? found->second
                                : models_.emplace(name, load_model(name)).first->second;
}

const HardwareSpec& Resolver::hardware(const std::string& name) {
  const auto found = hardware_.find(name);
  return found != hardware_.end() ? found->second
                                  : hardware_.emplace(name, load_hardware(name)).first->second;
}

Resolver::Engine Resolver::resolve_engine(const RunSpec& spec, const std::string& policy_name,
                                          const PolicyEntry& policy,
                                          std::vector<std::string>& warnings) {
  const StepTime step_time = parse_step_time(spec.step_time.value_or("roofline"));
  check_dtype(spec.dtype.value_or("auto"));
  Engine engine;
  CostInputs& inputs = engine.inputs;
  inputs.model = model(spec.model.value_or(std::string(kDefaultModel)));
  inputs.hardware = hardware(spec.hardware.value_or(std::string(kDefaultHardware)));
  if (spec.num_kv_heads) inputs.model.override_kv_heads(*spec.num_kv_heads);
  inputs.deployment = deployment_of(spec);
  inputs.base_us = step_time.base_us;
  inputs.per_token_us = step_time.per_token_us;
  inputs.model.check_tensor_parallel(inputs.deployment.tensor_parallel);
  const AllocatorEntry& allocator = registries_.allocators.at(spec.kv.value_or("paged"));
  engine.scheduler =
      scheduler_settings(spec, policy_name, policy, allocator, inputs.model, inputs.hardware);
  resolve_layer_groups(engine, policy.disaggregated, warnings);
  engine.scheduler.num_gpu_blocks = resolve_blocks(spec, inputs, engine.scheduler, warnings);
  if (!step_time.is_linear()) engine.host = host_times(inputs.hardware.host);
  const CostModelFactory& make = registries_.cost_models.at(step_time.model);
  make(inputs);  // says now what it cannot price
  engine.make_cost_model = [make, inputs] { return make(inputs); };
  engine.config = {{"model", inputs.model.name},
                   {"model_hash", inputs.model.hash},
                   {"hardware", inputs.hardware.name},
                   {"hardware_hash", inputs.hardware.hash},
                   {"tensor_parallel_size", inputs.deployment.tensor_parallel},
                   {"pipeline_parallel_size", inputs.deployment.pipeline_parallel},
                   {"dtype", spec.dtype.value_or("auto")},
                   {"quantization", spec.quantization.value_or("none")},
                   {"kv_cache_dtype", spec.kv_cache_dtype.value_or("auto")},
                   {"attention", spec.attention.value_or("flash")},
                   {"attention_top_k", inputs.deployment.attention_top_k},
                   {"step_time", step_time.text()}};
  if (const LayerGroups& groups = engine.scheduler.layer_groups; groups.windowed > 0) {
    engine.config["layer_groups"] = {{"full", groups.full},
                                     {"windowed", groups.windowed},
                                     {"window", groups.window},
                                     {"layers_per_group", groups.size}};
  }
  if (spec.num_kv_heads) engine.config["num_kv_heads"] = *spec.num_kv_heads;
  resolve_moves(spec, make, registries_, engine);
  validate(engine.scheduler);
  return engine;
}

}  // namespace servesim
