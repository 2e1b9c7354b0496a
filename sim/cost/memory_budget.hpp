/// How the memory of one GPU divides between weights, activations and KV cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// What the budget depends on beside model and GPU; names and defaults are vLLM's.
struct MemoryOptions {
  WeightFormat weights = WeightFormat::k16Bit;
  KvFormat kv = KvFormat::k16Bit;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  double gpu_memory_utilization = 0.92;
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t max_num_seqs = 1024;
  std::int64_t block_size = 16;
  std::int64_t max_model_len = 0;  ///< 0: the model's own
};

/// The HBM budget of one GPU, in bytes. With pipeline parallelism, of the stage that holds most.
struct MemoryBudget {
  double memory_bytes = 0;     ///< the GPU's memory
  double requested_bytes = 0;  ///< memory_bytes * gpu_memory_utilization
  double weight_bytes = 0;
  /// Peak of a profiling step, the larger of
  ///   max_num_batched_tokens x (3 x intermediate / tp + hidden) x 2: gate, up and their product
  ///   beside the residual (MoE: routed experts_per_token times the expert's intermediate), and
  ///   max_num_batched_tokens x hidden x 2 + max_num_seqs x vocab x 22: logits in 16 and 32 bits,
  ///   sorted values, their 64-bit indices, probabilities.
  double activation_bytes = 0;
  double overhead_bytes = 0;      ///< workspaces and graphs; with TP > 1 also collective buffers
  double kv_bytes_per_token = 0;  ///< on this GPU
  double available_bytes = 0;     ///< what is left for KV; negative when nothing is
  std::int64_t block_size = 0;
  std::int64_t num_gpu_blocks = 0;   ///< floor(available / (block_size * kv_bytes_per_token))
  std::int64_t capacity_tokens = 0;  ///< num_gpu_blocks * block_size
  std::int64_t max_model_len = 0;

  /// True when the weights fit and the KV cache holds one request of max_model_len.
  bool fits() const { return num_gpu_blocks > 0 && capacity_tokens >= max_model_len; }
  /// The arithmetic, a line per term, in decimal GB.
  std::vector<std::string> describe() const;
};

/// The budget, whether it fits or not. Throws InputError for options out of range and for models
/// that cannot be sharded as asked.
MemoryBudget memory_budget(const ModelSpec& model, const HardwareSpec& hardware,
                           const MemoryOptions& options);

/// As memory_budget(), but throws InputError when it does not fit. The message has the arithmetic
/// and the changes that would make it fit: a larger TP, fp8, int4, another GPU, a higher
/// utilisation; or, when only one request of max_model_len does not, the largest that does.
MemoryBudget require_memory_budget(const ModelSpec& model, const HardwareSpec& hardware,
                                   const MemoryOptions& options);

}  // namespace servesim
