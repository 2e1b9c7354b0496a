/// One run as the command line asks for it, before defaults and checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace servesim {

/// Flags of one run. What is absent was not given: resolve() chooses it.
struct RunSpec {
  std::string trace;
  std::string trace_format = "auto";
  std::string time_unit = "auto";
  std::int64_t hash_block_size = 0;  ///< 0: as the format says

  std::optional<std::string> policy, kv, model, hardware, router;
  std::optional<std::int64_t> tensor_parallel_size, pipeline_parallel_size, replicas;
  std::optional<std::int64_t> prefill_replicas, decode_replicas;
  std::optional<std::string> kv_link, kv_transfer;
  std::optional<std::string> prefill, decode;  ///< KEY=VALUE,...: settings of one pool
  std::optional<std::string> dtype, quantization, kv_cache_dtype;
  std::optional<std::int64_t> num_kv_heads;
  std::optional<std::string> step_time, attention;
  std::optional<std::int64_t> attention_top_k;

  std::optional<std::int64_t> block_size, num_gpu_blocks_override, max_model_len, max_num_seqs,
      max_num_batched_tokens, long_prefill_token_threshold;
  std::optional<double> gpu_memory_utilization, watermark;
  std::optional<bool> enable_prefix_caching, enable_chunked_prefill, async_scheduling,
      scheduler_reserve_full_isl;
  std::optional<std::string> scheduling_policy;
  std::optional<std::string> preemption_mode;
  std::optional<double> swap_space;  ///< GiB per GPU
  std::optional<std::string> kv_offload, eviction;

  std::optional<std::string> speculative_method;
  std::optional<std::int64_t> num_speculative_tokens;
  std::optional<double> speculative_acceptance_rate;

  std::optional<std::string> request_rate;  ///< a number or "inf"
  std::optional<double> burstiness, time_scale;
  std::optional<std::int64_t> max_concurrency, num_prompts;

  std::optional<std::string> scenario;
  std::optional<double> request_timeout;
  std::optional<std::int64_t> max_queue;

  std::string engine_config;  ///< path; empty: none
  std::uint64_t seed = 0;
};

}  // namespace servesim
