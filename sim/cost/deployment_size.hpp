/// Will it fit, and how fast can it be: the arithmetic of HBM bytes and FLOPs behind `simulate
/// size`. docs/size.md has the formulas with examples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/memory_budget.hpp"
#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// `batch` sequences with `context` tokens of KV cache each.
struct SizeQuery {
  MemoryOptions memory;
  std::int64_t context = 2048;
  std::int64_t batch = 1;
};

/// One decode step of the whole deployment by the usual rule: each weight is read once and takes
/// part in one multiply-add per token, and every cached token is read once. The input embedding, a
/// lookup, counts as any other weight. Of a MoE model only the experts that run count: in
/// expectation E (1 - (1 - k/E)^batch) of E when each token chooses k at random.
struct DecodeWork {
  double flops = 0;         ///< 2 x active parameters x batch, and attention over the context
  double weight_bytes = 0;  ///< as stored
  double kv_bytes = 0;      ///< windowed layers read their window

  double intensity() const { return flops / (weight_bytes + kv_bytes); }
};

/// REQUIRES: model.check_tensor_parallel() passes, batch >= 1, context >= 0.
DecodeWork decode_work(const ModelSpec& model, const MemoryOptions& memory, std::int64_t batch,
                       std::int64_t context);

/// What a deployment takes, in bytes summed over its tensor-parallel GPUs, and its limits.
struct DeploymentSize {
  MemoryBudget budget;  ///< of one GPU
  double weight_bytes = 0;
  double kv_bytes_per_token = 0;  ///< KV heads replicated over ranks included
  double kv_bytes = 0;            ///< batch x context x kv_bytes_per_token
  /// Unfilled tokens of each sequence's last block, and the null block that vLLM sets aside.
  double kv_padding_bytes = 0;
  double activation_bytes = 0;  ///< peak of a profiling step, see MemoryBudget
  double workspace_bytes = 0;   ///< context, CUDA graphs and collective buffers
  double total_bytes = 0;       ///< the sum of the five
  double memory_bytes = 0;
  double usable_bytes = 0;     ///< memory_bytes x gpu_memory_utilization
  std::int64_t max_batch = 0;  ///< sequences of `context` tokens that the KV pool holds at once
  /// Batch 1, no context: HBM rate / (active parameters x bits/8), every parameter in the format of
  /// the linear layers, scales left out.
  double decode_ceiling_tokens_per_s = 0;
  DecodeWork work;              ///< of the step asked for
  double step_floor_s = 0;      ///< its bytes over the HBM rate
  double ridge = 0;             ///< peak FLOP/s over HBM bytes/s, in the type the weights run in
  double linear_intensity = 0;  ///< of the linear layers alone, KV left out
  /// The smallest batch at which the linear layers reach the ridge.
  std::optional<std::int64_t> ridge_batch;
  /// The same for the whole step with its KV; often none: attention does a fixed number of FLOPs
  /// per byte of KV, whatever the batch.
  std::optional<std::int64_t> ridge_batch_with_kv;

  /// ENSURES: equals batch <= max_batch.
  bool fits() const { return total_bytes <= usable_bytes; }
};

/// Throws InputError for sizes out of range and as memory_budget() does.
DeploymentSize size_deployment(const ModelSpec& model, const HardwareSpec& hardware,
                               const SizeQuery& query);

/// A change that lessens what a deployment takes, and what it then takes.
struct SizeChange {
  std::string change;  ///< "quantise weights" and the like
  std::string flags;   ///< what to set
  double weight_bytes = 0;
  double kv_bytes = 0;
  double total_bytes = 0;  ///< in HBM
  double usable_bytes = 0;
  bool fits = false;
  std::int64_t max_batch = 0;
  double step_floor_s = 0;
  double host_bytes = 0;  ///< moved to host memory
};

/// What to change first when a deployment does not fit: one change each of quantised weights,
/// quantised KV, fewer KV heads (another model), more GPUs, weights in host memory (streamed over
/// PCIe in every step); of each kind the smallest that makes it fit, else the largest there is.
/// Those that make it fit come first; within that, the order above. When none but the last does,
/// quantising both stands at the end. Empty when the deployment fits.
std::vector<SizeChange> what_first(const ModelSpec& model, const HardwareSpec& hardware,
                                   const SizeQuery& query);

/// Decoding at one batch size, priced by RooflineCostModel after a pause (heat 0).
struct BatchPoint {
  std::int64_t batch = 0;
  double step_s = 0;
  double tokens_per_s = 0;
  double tokens_per_s_per_user = 0;
  std::string_view bound;  ///< limit_name() of the step
};

/// Throughput against latency: batches of 1, 2, 4, ... until one has reached ridge_batch, or up to
/// max_batch, which is then the last point. Throughput may fall by some percent at such a last
/// point, when it fills no whole tiles. Empty when not one sequence fits. Throws InputError when
/// the step cannot be priced (no all-reduce data for so many GPUs).
std::vector<BatchPoint> batch_curve(const ModelSpec& model, const HardwareSpec& hardware,
                                    const SizeQuery& query, const DeploymentSize& size);

}  // namespace servesim
