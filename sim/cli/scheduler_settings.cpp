#include "cli/scheduler_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "cost/server_defaults.hpp"

namespace servesim {
namespace {

/// Refuses an explicit flag that the policy cannot honour.
void refuse(bool given, std::string_view flag, const std::string& policy, std::string_view why) {
  if (given) throw InputError(fmt::format("--policy {} {}: {}", policy, flag, why));
}

void check_chunked_prefill(const RunSpec& spec, const std::string& name,
                           const PolicyEntry& policy) {
  if (!spec.enable_chunked_prefill) return;
  if (policy.chunked_prefill) {
    refuse(!*spec.enable_chunked_prefill, "--no-enable-chunked-prefill", name,
           "this policy computes prompts in chunks; --policy continuous computes them whole");
  } else {
    refuse(*spec.enable_chunked_prefill, "--enable-chunked-prefill", name,
           "this policy computes prompts whole; --policy chunked computes them in chunks");
  }
}

/// A policy without vLLM's engine has none of its options.
void check_plain_policy(const RunSpec& spec, const std::string& name) {
  const std::string_view why = "this policy has no such mechanism";
  refuse(spec.enable_prefix_caching.value_or(false), "--enable-prefix-caching", name, why);
  refuse(spec.async_scheduling.value_or(false), "--async-scheduling", name, why);
  refuse(spec.speculative_method.has_value(), "--speculative-method", name, why);
  refuse(spec.long_prefill_token_threshold.value_or(0) > 0, "--long-prefill-token-threshold", name,
         why);
  refuse(spec.watermark.value_or(0) > 0, "--watermark", name, why);
  refuse(spec.scheduler_reserve_full_isl.has_value(),
         spec.scheduler_reserve_full_isl.value_or(true) ? "--scheduler-reserve-full-isl"
                                                        : "--no-scheduler-reserve-full-isl",
         name, why);
  refuse(spec.preemption_mode.value_or("recompute") == "swap", "--preemption-mode", name,
         "a static batch holds what it needs to its end; nothing is ever preempted");
  refuse(spec.scheduling_policy.value_or("fcfs") != "fcfs", "--scheduling-policy", name,
         "this policy takes requests first come, first served");
}

/// What a pipeline does not go with, flag by flag.
void check_pipeline(const RunSpec& spec, const PolicyEntry& policy) {
  if (spec.pipeline_parallel_size.value_or(1) == 1) return;
  const auto refuse_with = [&spec](bool given, std::string_view flag, std::string_view why) {
    if (!given) return;
    throw InputError(
        fmt::format("--pipeline-parallel-size {} {}: {}", *spec.pipeline_parallel_size, flag, why));
  };
  refuse_with(policy.disaggregated || !policy.vllm_engine,
              "--policy " + spec.policy.value_or("chunked"),
              "only the engines of --policy continuous and chunked have pipelines here");
  refuse_with(spec.async_scheduling.value_or(false), "--async-scheduling",
              "the batches in flight in the stages take its place");
  refuse_with(spec.speculative_method.has_value(), "--speculative-method",
              "speculative decoding is not modelled on a pipeline");
  refuse_with(spec.preemption_mode == "swap", "--preemption-mode swap",
              "accepted: recompute, stall");
  refuse_with(spec.kv_offload.has_value(), "--kv-offload", "tiers are not modelled on a pipeline");
}

SpeculativeConfig speculative_settings(const RunSpec& spec) {
  SpeculativeConfig config;
  if (!spec.speculative_method) {
    if (spec.num_speculative_tokens || spec.speculative_acceptance_rate) {
      throw InputError(fmt::format(
          "--{} needs --speculative-method ngram or eagle",
          spec.num_speculative_tokens ? "num-speculative-tokens" : "speculative-acceptance-rate"));
    }
    return config;
  }
  if (*spec.speculative_method != "ngram" && *spec.speculative_method != "eagle") {
    throw unknown_name("speculative method", *spec.speculative_method, {"ngram", "eagle"});
  }
  if (!spec.num_speculative_tokens || !spec.speculative_acceptance_rate) {
    throw InputError(
        "--speculative-method needs --num-speculative-tokens K and --speculative-acceptance-rate "
        "A");
  }
  config.method =
      *spec.speculative_method == "ngram" ? SpeculativeMethod::kNgram : SpeculativeMethod::kEagle;
  config.num_speculative_tokens = *spec.num_speculative_tokens;
  config.acceptance_rate = *spec.speculative_acceptance_rate;
  return config;
}

SchedulingPolicy parse_scheduling_policy(const std::string& name) {
  if (name == "fcfs") return SchedulingPolicy::kFcfs;
  if (name == "priority") return SchedulingPolicy::kPriority;
  throw unknown_name("scheduling policy", name, {"fcfs", "priority"});
}

PreemptionMode parse_preemption_mode(const std::string& name) {
  if (name == "recompute") return PreemptionMode::kRecompute;
  if (name == "swap") return PreemptionMode::kSwap;
  if (name == "stall") return PreemptionMode::kStall;
  throw unknown_name("preemption mode", name, {"recompute", "swap", "stall"});
}

/// Contiguous regions cannot be shared, moved block by block or hold lookahead slots.
void check_contiguous(const RunSpec& spec, const std::string& kv) {
  const auto refuse_with = [&kv](bool given, std::string_view flag, std::string_view why) {
    if (given) throw InputError(fmt::format("--kv {} {}: {}", kv, flag, why));
  };
  refuse_with(spec.enable_prefix_caching.value_or(false), "--enable-prefix-caching",
              "contiguous regions cannot be shared; --kv paged can");
  refuse_with(spec.speculative_method.has_value(), "--speculative-method",
              "speculative decoding needs --kv paged");
  refuse_with(spec.preemption_mode == "swap", "--preemption-mode swap",
              "swapping moves blocks; accepted: recompute, stall, or --kv paged");
}

std::int64_t resolve_max_model_len(const RunSpec& spec, const ModelSpec& model) {
  if (!spec.max_model_len) return model.max_position;
  if (*spec.max_model_len > model.max_position) {
    throw InputError(fmt::format("--max-model-len {} is more than the {} of {}; accepted: 1 to {}",
                                 *spec.max_model_len, model.max_position, model.name,
                                 model.max_position));
  }
  return *spec.max_model_len;
}

/// The token budget and the number of sequences, where not given, as vLLM's argument parser has
/// them: the budget covers a whole prompt when prompts are not chunked and is never more than all
/// sequences could use; sequences are never more than the budget.
void resolve_batch_limits(const RunSpec& spec, const ServerDefaults& defaults, bool whole_prompts,
                          SchedulerConfig& config) {
  config.max_num_seqs = spec.max_num_seqs.value_or(defaults.max_num_seqs);
  if (spec.max_num_batched_tokens) {
    config.max_num_batched_tokens = *spec.max_num_batched_tokens;
  } else {
    config.max_num_batched_tokens =
        std::min(whole_prompts ? std::max(defaults.max_num_batched_tokens, config.max_model_len)
                               : defaults.max_num_batched_tokens,
                 config.max_num_seqs * config.max_model_len);
  }
  if (!spec.max_num_seqs) {
    config.max_num_seqs = std::min(config.max_num_seqs, config.max_num_batched_tokens);
  }
}

}  // namespace

SchedulerConfig scheduler_settings(const RunSpec& spec, const std::string& policy_name,
                                   const PolicyEntry& policy, const AllocatorEntry& allocator,
                                   const ModelSpec& model, const HardwareSpec& hardware) {
  check_chunked_prefill(spec, policy_name, policy);
  check_pipeline(spec, policy);
  const bool contiguous = allocator.region_rule != nullptr;
  if (contiguous) check_contiguous(spec, spec.kv.value_or(""));
  if (!policy.vllm_engine) check_plain_policy(spec, policy_name);
  SchedulerConfig config;
  config.block_size = spec.block_size.value_or(16);
  config.max_model_len = resolve_max_model_len(spec, model);
  config.enable_chunked_prefill = policy.chunked_prefill;
  const bool whole_prompts = policy.vllm_engine && !policy.chunked_prefill;
  resolve_batch_limits(spec, server_defaults(hardware.memory_bytes, hardware.is_a100()),
                       whole_prompts, config);
  config.long_prefill_token_threshold = spec.long_prefill_token_threshold.value_or(0);
  config.watermark = spec.watermark.value_or(0);
  config.scheduling_policy = parse_scheduling_policy(spec.scheduling_policy.value_or("fcfs"));
  config.enable_prefix_caching =
      spec.enable_prefix_caching.value_or(policy.vllm_engine && !contiguous);
  config.region_rule = allocator.region_rule;
  config.preemption_mode = parse_preemption_mode(spec.preemption_mode.value_or("recompute"));
  if (spec.swap_space && config.preemption_mode != PreemptionMode::kSwap) {
    throw InputError("--swap-space needs --preemption-mode swap");
  }
  config.scheduler_reserve_full_isl = spec.scheduler_reserve_full_isl.value_or(true);
  config.speculative = speculative_settings(spec);
  // vLLM turns asynchronous scheduling off for n-gram drafting, which runs on the host.
  config.pipeline_parallel = spec.pipeline_parallel_size.value_or(1);
  const bool async = policy.vllm_engine && config.pipeline_parallel == 1 &&
                     config.speculative.method != SpeculativeMethod::kNgram;
  config.async_scheduling = spec.async_scheduling.value_or(async);
  return config;
}

}  // namespace servesim
