#include "cli/engine_config.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/step_time.hpp"
#include "core/params.hpp"

namespace servesim {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;

std::int64_t integer_or(Params& params, const std::string& key, std::int64_t fallback,
                        std::int64_t low) {
  params.allow(key);
  return params.has(key) ? params.integer(key, low, kMost) : fallback;
}

SchedulingPolicy read_policy(Params& params) {
  const auto name = params.optional<std::string>("policy", "fcfs");
  if (name == "fcfs") return SchedulingPolicy::kFcfs;
  if (name == "priority") return SchedulingPolicy::kPriority;
  throw params.error("policy",
                     unknown_name("scheduling policy", name, {"fcfs", "priority"}).what());
}

SpeculativeConfig read_speculative(const nlohmann::json& document, Params& params) {
  SpeculativeConfig config;
  params.allow("spec");
  const auto found = document.find("spec");
  if (found == document.end() || found->is_null()) return config;
  Params spec = params.child("spec");
  const auto method = spec.required<std::string>("method");
  if (method != "ngram" && method != "eagle") {
    throw spec.error("method",
                     unknown_name("speculative method", method, {"ngram", "eagle"}).what());
  }
  config.method = method == "ngram" ? SpeculativeMethod::kNgram : SpeculativeMethod::kEagle;
  config.num_speculative_tokens = spec.integer("k", 1, 1024);
  config.deterministic_acceptance = true;
  spec.finish();
  return config;
}

/// The settings' defaults here are those of the recorded schedules, not of a server.
SchedulerConfig read_scheduler(const nlohmann::json& document, Params& params) {
  SchedulerConfig c;
  c.num_gpu_blocks = params.integer("num_gpu_blocks", 2, kMost);
  c.block_size = integer_or(params, "block_size", 16, 1);
  c.max_num_seqs = integer_or(params, "max_num_seqs", 16, 1);
  c.max_num_batched_tokens = integer_or(params, "max_num_batched_tokens", 2048, 1);
  c.max_model_len = integer_or(params, "max_model_len", 8192, 1);
  c.long_prefill_token_threshold = integer_or(params, "long_prefill_token_threshold", 0, 0);
  params.allow("watermark");
  c.watermark = params.has("watermark") ? params.number("watermark", 0, 1) : 0.0;
  c.enable_prefix_caching = params.optional<bool>("enable_prefix_caching", true);
  c.enable_chunked_prefill = params.optional<bool>("enable_chunked_prefill", true);
  c.scheduler_reserve_full_isl = params.optional<bool>("scheduler_reserve_full_isl", true);
  c.async_scheduling = params.optional<bool>("async_scheduling", false);
  c.scheduling_policy = read_policy(params);
  c.speculative = read_speculative(document, params);
  c.truncate_at_max_model_len = true;
  return c;
}

}  // namespace

EngineConfig load_engine_config(const std::string& path) {
  const nlohmann::json document = read_json_file(path);
  Params params(document, path);
  EngineConfig config;
  config.scheduler = read_scheduler(document, params);
  Params step = params.child("step_us");
  config.base_us =
      static_cast<double>(step.integer("base", 0, static_cast<std::int64_t>(kLongestBaseUs)));
  step.allow("per_token");
  config.per_token_us = step.has("per_token")
                            ? static_cast<double>(step.integer(
                                  "per_token", 0, static_cast<std::int64_t>(kLongestTokenUs)))
                            : 0.0;
  if (config.base_us + config.per_token_us == 0) {
    throw step.error("base", "a step must take some time, and per_token is 0 too");
  }
  step.finish();
  params.finish();
  try {
    validate(config.scheduler);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path, error.what()));
  }
  return config;
}

}  // namespace servesim
