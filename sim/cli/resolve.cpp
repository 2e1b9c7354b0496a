#include "cli/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "cli/engine_config.hpp"
#include "cli/scheduler_settings.hpp"
#include "cli/step_time.hpp"
#include "core/data_dir.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/params.hpp"
#include "core/units.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"

namespace servesim {
namespace {

constexpr std::string_view kDefaultModel = "llama-3.1-8b";
constexpr std::string_view kDefaultHardware = "h100-sxm";

double parse_rate(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  const double rate = parse_number(text, "--request-rate");
  constexpr double kLowest = 1e-6;
  constexpr double kHighest = 1e9;
  if (!(rate >= kLowest && rate <= kHighest)) {
    throw InputError(
        fmt::format("--request-rate {}: accepted: {} to {}, or inf", text, kLowest, kHighest));
  }
  return rate;
}

/// Hash of the JSON file that `name` stands for: one that ships in models/`folder`, or a path.
std::string data_hash(const std::string& folder, const std::string& name) {
  const std::string shipped = fmt::format("{}/models/{}/{}.json", data_dir(), folder, name);
  const bool ships = std::filesystem::exists(shipped);
  return canonical_hash(read_json_file(ships ? shipped : name));
}

/// A value, or null.
template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

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

nlohmann::json load_json(const RunSpec& spec, const ResolvedRun& run) {
  return {{"trace_format", run.trace.format},
          {"time_unit", spec.time_unit},
          {"hash_block_size", run.trace.hash_block_size},
          {"request_rate", or_null(spec.request_rate)},
          {"burstiness", run.load.burstiness},
          {"time_scale", run.load.time_scale},
          {"num_prompts", or_null(spec.num_prompts)},
          {"max_concurrency", or_null(spec.max_concurrency)}};
}

nlohmann::json goodput_json(const GoodputTargets& targets) {
  nlohmann::json json = nlohmann::json::object();
  if (targets.ttft_ms) json["ttft_ms"] = *targets.ttft_ms;
  if (targets.tpot_ms) json["tpot_ms"] = *targets.tpot_ms;
  if (targets.e2el_ms) json["e2el_ms"] = *targets.e2el_ms;
  return json;
}

HostTimes host_times(const HostParameters& host) {
  const auto from_ms = [](double ms) { return SimTime::from_seconds(ms / 1000); };
  return {from_ms(host.step_ms), from_ms(host.front_end_before_ms),
          from_ms(host.front_end_after_ms)};
}

void check_burstiness(const RunSpec& spec, const LoadOptions& load) {
  const bool has_rate = load.request_rate && std::isfinite(*load.request_rate);
  if (spec.burstiness && !has_rate) {
    throw InputError("--burstiness needs a finite --request-rate, whose intervals it shapes");
  }
  if (spec.time_scale && load.request_rate) {
    throw InputError(
        "--time-scale and --request-rate contradict each other: one stretches the "
        "trace's arrivals, the other replaces them");
  }
}

}  // namespace

const Resolver::Loaded<ModelSpec>& Resolver::model(const std::string& name) {
  const auto found = models_.find(name);
  if (found != models_.end()) return found->second;
  ModelSpec spec = load_model(name);
  return models_.emplace(name, Loaded<ModelSpec>{std::move(spec), data_hash("llm", name)})
      .first->second;
}

const Resolver::Loaded<HardwareSpec>& Resolver::hardware(const std::string& name) {
  const auto found = hardware_.find(name);
  if (found != hardware_.end()) return found->second;
  HardwareSpec spec = load_hardware(name);
  return hardware_.emplace(name, Loaded<HardwareSpec>{std::move(spec), data_hash("hardware", name)})
      .first->second;
}

ResolvedRun Resolver::resolve(const RunSpec& spec, const GoodputTargets& targets) {
  ResolvedRun run;
  run.targets = targets;
  resolve_common(spec, run);
  if (spec.engine_config.empty()) {
    resolve_flags(spec, run);
  } else {
    resolve_engine_config(spec, run);
  }
  const SchedulerConfig& scheduler = run.cluster.scheduler;
  run.kv_facts.allocator = run.kv;
  run.kv_facts.num_gpu_blocks = scheduler.num_gpu_blocks;
  run.kv_facts.block_size = scheduler.block_size;
  run.kv_facts.capacity_tokens = (scheduler.num_gpu_blocks - 1) * scheduler.block_size;
  run.kv_facts.capacity_slots =
      scheduler.layer_groups.pool_blocks(scheduler.num_gpu_blocks - 1) * scheduler.block_size;
  if (!holds_max_model_len(scheduler, scheduler.num_gpu_blocks) && spec.engine_config.empty()) {
    run.warnings.push_back(fmt::format(
        "max_model_len {} is more than the KV pool's {} tokens: vLLM would refuse to start; here, "
        "requests that do not fit are rejected",
        scheduler.max_model_len, run.kv_facts.capacity_tokens));
  }
  run.config.update(scheduler_json(scheduler));
  run.config.update(load_json(spec, run));
  run.config["policy"] = run.policy;
  run.config["kv"] = run.kv;
  run.config["replicas"] = run.cluster.replicas;
  run.config["goodput"] = goodput_json(targets);
  run.config["seed"] = spec.seed;
  run.config["host_times_ns"] = {{"step", run.cluster.host.step.ns()},
                                 {"front_end_before", run.cluster.host.front_before.ns()},
                                 {"front_end_after", run.cluster.host.front_after.ns()}};
  run.config["hash"] = canonical_hash(run.config);
  return run;
}

void Resolver::resolve_common(const RunSpec& spec, ResolvedRun& run) {
  run.trace_path = spec.trace;
  run.trace.format = spec.trace_format;
  run.trace.time_unit = parse_time_unit(spec.time_unit);
  run.trace.hash_block_size = spec.hash_block_size;
  if (spec.request_rate) run.load.request_rate = parse_rate(*spec.request_rate);
  check_burstiness(spec, run.load);
  run.load.burstiness = spec.burstiness.value_or(1);
  run.load.time_scale = spec.time_scale.value_or(1);
  run.load.num_prompts = static_cast<std::uint64_t>(spec.num_prompts.value_or(0));
  run.load.seed = spec.seed;
  run.cluster.replicas = spec.replicas.value_or(1);
  run.cluster.max_concurrency = spec.max_concurrency.value_or(0);
  run.cluster.seed = spec.seed;
  const std::string router = spec.router.value_or("round-robin");
  run.parts.make_router = registries_.routers.at(router);
  run.config["router"] = run.cluster.replicas > 1 ? nlohmann::json(router) : nullptr;
}

void Resolver::resolve_flags(const RunSpec& spec, ResolvedRun& run) {
  run.policy = spec.policy.value_or("chunked");
  run.kv = spec.kv.value_or("paged");
  const PolicyEntry& policy = registries_.policies.at(run.policy);
  const AllocatorEntry& allocator = registries_.allocators.at(run.kv);
  const StepTime step_time = parse_step_time(spec.step_time.value_or("roofline"));
  check_dtype(spec.dtype.value_or("auto"));
  CostInputs inputs;
  const auto& loaded_model = model(spec.model.value_or(std::string(kDefaultModel)));
  const auto& loaded_hardware = hardware(spec.hardware.value_or(std::string(kDefaultHardware)));
  inputs.model = loaded_model.spec;
  inputs.hardware = loaded_hardware.spec;
  if (spec.num_kv_heads) {
    inputs.model.override_kv_heads(*spec.num_kv_heads);
    run.config["num_kv_heads"] = *spec.num_kv_heads;
  }
  inputs.deployment.tensor_parallel = spec.tensor_parallel_size.value_or(1);
  inputs.deployment.weights = parse_weight_format(spec.quantization.value_or("none"));
  inputs.deployment.kv = parse_kv_format(spec.kv_cache_dtype.value_or("auto"));
  inputs.deployment.attention = parse_attention_kind(spec.attention.value_or("flash"));
  inputs.deployment.attention_top_k = spec.attention_top_k.value_or(0);
  if (spec.speculative_method == "eagle") {
    inputs.deployment.draft_tokens = spec.num_speculative_tokens.value_or(0);
  }
  inputs.base_us = step_time.base_us;
  inputs.per_token_us = step_time.per_token_us;
  inputs.model.check_tensor_parallel(inputs.deployment.tensor_parallel);
  run.model = inputs.model.name;
  run.hardware = inputs.hardware.name;
  run.tensor_parallel_size = inputs.deployment.tensor_parallel;
  run.cluster.scheduler =
      scheduler_settings(spec, run.policy, policy, allocator, inputs.model, inputs.hardware);
  resolve_layer_groups(inputs, run);
  resolve_blocks(spec, inputs, run);
  resolve_moves(spec, inputs, step_time.model, run);
  validate(run.cluster.scheduler);
  if (!step_time.is_linear()) run.cluster.host = host_times(inputs.hardware.host);
  run.parts.make_policy = policy.make;
  const CostModelFactory& make = registries_.cost_models.at(step_time.model);
  make(inputs);  // says now what it cannot price
  run.parts.make_cost_model = [make, inputs] { return make(inputs); };
  run.config.update({{"model", run.model},
                     {"model_hash", loaded_model.hash},
                     {"hardware", run.hardware},
                     {"hardware_hash", loaded_hardware.hash},
                     {"tensor_parallel_size", inputs.deployment.tensor_parallel},
                     {"dtype", spec.dtype.value_or("auto")},
                     {"quantization", spec.quantization.value_or("none")},
                     {"kv_cache_dtype", spec.kv_cache_dtype.value_or("auto")},
                     {"attention", spec.attention.value_or("flash")},
                     {"attention_top_k", inputs.deployment.attention_top_k},
                     {"step_time", step_time.text()}});
}

void Resolver::resolve_engine_config(const RunSpec& spec, ResolvedRun& run) {
  const EngineConfig engine = load_engine_config(spec.engine_config);
  run.cluster.scheduler = engine.scheduler;
  run.cluster.wait_for_arrivals = true;
  run.policy = engine.scheduler.enable_chunked_prefill ? "chunked" : "continuous";
  run.kv = "paged";
  run.model = "none";
  run.hardware = "none";
  if (run.trace.format == "auto") run.trace.format = "schedule-case";
  StepTime step_time{"linear", engine.base_us, engine.per_token_us};
  CostInputs inputs;
  inputs.base_us = engine.base_us;
  inputs.per_token_us = engine.per_token_us;
  run.parts.make_policy = registries_.policies.at(run.policy).make;
  const CostModelFactory& make = registries_.cost_models.at("linear");
  run.parts.make_cost_model = [make, inputs] { return make(inputs); };
  run.config.update(
      {{"model", run.model}, {"hardware", run.hardware}, {"step_time", step_time.text()}});
}

void set_trace_format(ResolvedRun& run, const std::string& format) {
  run.config.erase("hash");
  run.config["trace_format"] = format;
  run.config["hash"] = canonical_hash(run.config);
}

GoodputTargets parse_goodput(const std::vector<std::string>& words) {
  GoodputTargets targets;
  for (const std::string& word : words) {
    const std::size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    if (colon == std::string::npos || (name != "ttft" && name != "tpot" && name != "e2el")) {
      throw InputError(fmt::format(
          "--goodput {}: accepted: ttft:MS, tpot:MS and e2el:MS, in milliseconds", word));
    }
    const double value = parse_number(word.substr(colon + 1), "--goodput " + name);
    if (!(value > 0)) throw InputError(fmt::format("--goodput {}: must be above 0", word));
    std::optional<double>& target = name == "ttft"   ? targets.ttft_ms
                                    : name == "tpot" ? targets.tpot_ms
                                                     : targets.e2el_ms;
    if (target) throw InputError(fmt::format("--goodput names {} twice", name));
    target = value;
  }
  return targets;
}

}  // namespace servesim
