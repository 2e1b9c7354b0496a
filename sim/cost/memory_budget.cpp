#include "cost/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace servesim {
namespace {

double d(std::int64_t value) {
  return static_cast<double>(value);
}

void check_range(const char* flag, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    throw InputError(
        fmt::format("{} {} is out of range; accepted: {} to {}", flag, value, low, high));
  }
}

void check(const ModelSpec& model, const MemoryOptions& o) {
  constexpr std::int64_t kMost = 1'000'000'000;
  if (!(o.gpu_memory_utilization > 0 && o.gpu_memory_utilization <= 1)) {
    throw InputError(
        fmt::format("gpu-memory-utilization {} is out of range; accepted: above 0, up to 1",
                    o.gpu_memory_utilization));
  }
  check_range("max-num-batched-tokens", o.max_num_batched_tokens, 1, kMost);
  check_range("max-num-seqs", o.max_num_seqs, 1, kMost);
  check_range("block-size", o.block_size, 1, kMost);
  if (o.pipeline_parallel < 1 || o.pipeline_parallel > model.layers) {
    throw InputError(fmt::format("--pipeline-parallel-size {}: accepted: 1 to {}, the layers of {}",
                                 o.pipeline_parallel, model.layers, model.name));
  }
  model.check_tensor_parallel(o.tensor_parallel);
  if (o.max_model_len < 0 || o.max_model_len > model.max_position) {
    throw InputError(fmt::format("max-model-len {}: {} supports 1 to {}", o.max_model_len,
                                 model.name, model.max_position));
  }
}

double activation_bytes(const ModelSpec& model, const MemoryOptions& o) {
  /// Bytes per logit while sampling: 16-bit and 32-bit logits, sorted values, 64-bit indices,
  /// probabilities.
  constexpr double kSamplerBytes = 2 + 4 + 4 + 8 + 4;
  double channels = model.dense_layers() > 0 ? d(model.intermediate) : 0;
  if (model.moe) {
    channels = std::max(channels, d(model.moe->experts_per_token * model.moe->intermediate +
                                    model.moe->shared_intermediate));
  }
  const double tokens = d(o.max_num_batched_tokens);
  const double layer = tokens * (3 * channels / d(o.tensor_parallel) + d(model.hidden)) * kBytes16;
  const double sampler =
      tokens * d(model.hidden) * kBytes16 +
      d(std::min(o.max_num_seqs, o.max_num_batched_tokens)) * d(model.vocab) * kSamplerBytes;
  return std::max(layer, sampler);
}

/// The share of the layers that the fullest pipeline stage holds.
double stage_share(const ModelSpec& model, std::int64_t stages) {
  return d((model.layers + stages - 1) / stages) / d(model.layers);
}

double stage_weight_bytes(const ModelSpec& model, const MemoryOptions& o) {
  const double all = model.weight_bytes(o.weights, o.tensor_parallel);
  if (o.pipeline_parallel == 1) return all;
  const double embedding = d(model.vocab * model.hidden) * kBytes16 / d(o.tensor_parallel);
  const double both = embedding * (model.tied_embeddings ? 1 : 2);
  return (all - both) * stage_share(model, o.pipeline_parallel) + embedding;
}

}  // namespace

MemoryBudget memory_budget(const ModelSpec& model, const HardwareSpec& hardware,
                           const MemoryOptions& options) {
  check(model, options);
  MemoryBudget budget;
  budget.memory_bytes = hardware.memory_bytes;
  budget.requested_bytes = hardware.memory_bytes * options.gpu_memory_utilization;
  budget.weight_bytes = stage_weight_bytes(model, options);
  budget.activation_bytes = activation_bytes(model, options);
  budget.overhead_bytes =
      hardware.context_bytes + (options.tensor_parallel > 1 ? hardware.collective_bytes : 0);
  budget.kv_bytes_per_token =
      model.kv_bytes_per_token_per_rank(options.kv, options.tensor_parallel) *
      stage_share(model, options.pipeline_parallel);
  budget.available_bytes = budget.requested_bytes - budget.weight_bytes - budget.activation_bytes -
                           budget.overhead_bytes;
  budget.block_size = options.block_size;
  budget.max_model_len = options.max_model_len > 0 ? options.max_model_len : model.max_position;
  const double block_bytes = budget.kv_bytes_per_token * d(options.block_size);
  budget.num_gpu_blocks =
      static_cast<std::int64_t>(std::floor(std::max(0.0, budget.available_bytes) / block_bytes));
  budget.capacity_tokens = budget.num_gpu_blocks * options.block_size;
  return budget;
}

}  // namespace servesim
