#include "cli/resolve.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "cli/engine_config.hpp"
#include "cli/resolve_engine.hpp"
#include "cli/step_time.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/units.hpp"
#include "report/result_json.hpp"

namespace servesim {
namespace {

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

/// A value, or null.
template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
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
  run.kv_facts = kv_facts_of(run.kv, scheduler, run.tensor_parallel_size);
  if (!holds_max_model_len(scheduler, scheduler.num_gpu_blocks) && spec.engine_config.empty()) {
    run.warnings.push_back(fmt::format(
        "max_model_len {} is more than the KV pool's {} tokens: vLLM would refuse to start; here, "
        "requests that do not fit are rejected",
        scheduler.max_model_len, run.kv_facts.capacity_tokens));
  }
  if (!run.cluster.disaggregated) run.config.update(scheduler_json(scheduler));
  run.config.update(load_json(spec, run));
  run.config["policy"] = run.policy;
  run.config["kv"] = run.kv;
  if (!run.cluster.disaggregated) run.config["replicas"] = run.cluster.replicas;
  run.config["goodput"] = goodput_json(targets);
  run.config["seed"] = spec.seed;
  if (!run.cluster.disaggregated) run.config["host_times_ns"] = host_json(run.cluster.host);
  if (spec.request_timeout && !registries_.policies.at(run.policy).vllm_engine) {
    throw InputError(fmt::format(
        "--policy {} --request-timeout: this policy cannot give up a request", run.policy));
  }
  resolve_faults(spec, run);
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
  const bool routes = run.cluster.replicas > 1 || spec.policy == "disaggregated";
  run.config["router"] = routes ? nlohmann::json(router) : nullptr;
}

void Resolver::resolve_flags(const RunSpec& spec, ResolvedRun& run) {
  run.policy = spec.policy.value_or("chunked");
  run.kv = spec.kv.value_or("paged");
  const PolicyEntry& policy = registries_.policies.at(run.policy);
  registries_.allocators.require(run.kv);
  check_pools(spec, policy, run.policy);
  if (policy.disaggregated) {
    resolve_disaggregated(spec, policy, run);
    return;
  }
  const Engine engine = resolve_engine(spec, run.policy, policy, run.warnings);
  run.model = engine.inputs.model.name;
  run.hardware = engine.inputs.hardware.name;
  run.tensor_parallel_size = engine.inputs.deployment.tensor_parallel;
  run.pipeline_parallel_size = engine.inputs.deployment.pipeline_parallel;
  run.model_context = engine.inputs.model.max_position;
  run.cluster.scheduler = engine.scheduler;
  run.cluster.host = engine.host;
  run.parts.make_policy = policy.make;
  run.parts.make_cost_model = engine.make_cost_model;
  run.config.update(engine.config);
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

void set_request_rate(ResolvedRun& run, const std::string& text, double rate) {
  run.load.request_rate = rate;
  run.config.erase("hash");
  run.config["request_rate"] = text;
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
