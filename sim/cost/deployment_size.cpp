#include "cost/deployment_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.hpp"
#include "cost/deployment.hpp"
#include "cost/explain.hpp"
#include "cost/roofline_cost_model.hpp"

namespace servesim {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000;

double d(std::int64_t value) {
  return static_cast<double>(value);
}

void check_query(const SizeQuery& query) {
  const auto check = [](const char* flag, std::int64_t value) {
    if (value >= 1 && value <= kMostTokens) return;
    throw InputError(
        fmt::format("{} {} is out of range; accepted: 1 to {}", flag, value, kMostTokens));
  };
  check("context", query.context);
  check("batch", query.batch);
}

/// Parameters that one token runs through, both embeddings included.
double active_parameters(const ModelSpec& model) {
  return d(model.active_parameters()) + (model.tied_embeddings ? 0 : d(model.vocab * model.hidden));
}

/// Stored bytes of the weights that a step of `batch` tokens reads, over all ranks.
double weight_bytes_read(const ModelSpec& model, const MemoryOptions& memory, std::int64_t batch) {
  const double stored =
      model.weight_bytes(memory.weights, memory.tensor_parallel) * d(memory.tensor_parallel);
  double unread = d(model.other_parameters) * kBytes16;
  if (model.moe) {
    const MoeSpec& moe = *model.moe;
    const double idle_share = std::pow(1 - d(moe.experts_per_token) / d(moe.experts), d(batch));
    const double experts = 3 * d(model.hidden) * d(moe.intermediate) * d(moe.experts);
    unread += idle_share * experts * d(moe.layers) * bytes_per_weight(memory.weights);
  }
  return stored - unread;
}

/// Tokens a query reads, averaged over the layers.
double tokens_read(const ModelSpec& model, std::int64_t context) {
  if (model.windowed_layers == 0) return d(context);
  const double windowed = d(std::min(context, model.sliding_window));
  return (d(model.full_attention_layers()) * d(context) + d(model.windowed_layers) * windowed) /
         d(model.layers);
}

/// FLOPs of one layer per cached token of a decoding sequence. MLA decodes in its absorbed form:
/// each head works on the latent itself (DeepSeek-V2, arXiv:2405.04434, section 2.1).
double decode_flops_per_cached_token(const ModelSpec& model) {
  if (!model.mla) return model.attention_flops_per_pair();
  return 2 * d(model.heads) * d(2 * model.mla->kv_lora_rank + model.mla->qk_rope_head_dim);
}

/// Bits per weight of a format without its scales.
double ideal_bytes_per_weight(WeightFormat format) {
  return format == WeightFormat::kInt4 ? 0.5 : bytes_per_weight(format);
}

/// The smallest batch whose intensity reaches `ridge`. `intensity` must not fall with the batch:
/// weights are read once, and the experts that run grow ever slower.
template <typename Intensity>
std::optional<std::int64_t> batch_reaching(double ridge, const Intensity& intensity) {
  if (intensity(kMostTokens) < ridge) return std::nullopt;
  std::int64_t low = 0;
  std::int64_t high = kMostTokens;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (intensity(middle) < ridge ? low : high) = middle;
  }
  return high;
}

void add_limits(const ModelSpec& model, const HardwareSpec& hardware, const SizeQuery& query,
                DeploymentSize& size) {
  const MemoryOptions& memory = query.memory;
  const double rate = hardware.hbm_bytes_per_s * d(memory.tensor_parallel);
  size.ridge = peak_flops(hardware, memory.weights) / hardware.hbm_bytes_per_s;
  size.decode_ceiling_tokens_per_s =
      rate / (active_parameters(model) * ideal_bytes_per_weight(memory.weights));
  size.work = decode_work(model, memory, query.batch, query.context);
  size.step_floor_s = (size.work.weight_bytes + size.work.kv_bytes) / rate;
  const auto linear = [&](std::int64_t batch) {
    return decode_work(model, memory, batch, 0).intensity();
  };
  size.linear_intensity = linear(query.batch);
  size.ridge_batch = batch_reaching(size.ridge, linear);
  size.ridge_batch_with_kv = batch_reaching(size.ridge, [&](std::int64_t batch) {
    return decode_work(model, memory, batch, query.context).intensity();
  });
}

}  // namespace

DecodeWork decode_work(const ModelSpec& model, const MemoryOptions& memory, std::int64_t batch,
                       std::int64_t context) {
  const double tokens = tokens_read(model, context) * d(batch);
  DecodeWork work;
  work.flops = 2 * active_parameters(model) * d(batch) +
               tokens * d(model.layers) * decode_flops_per_cached_token(model);
  work.weight_bytes = weight_bytes_read(model, memory, batch);
  work.kv_bytes = tokens * model.kv_bytes_per_token(memory.kv, memory.tensor_parallel);
  return work;
}

DeploymentSize size_deployment(const ModelSpec& model, const HardwareSpec& hardware,
                               const SizeQuery& query) {
  check_query(query);
  const MemoryOptions& memory = query.memory;
  DeploymentSize size;
  size.budget = memory_budget(model, hardware, memory);
  const MemoryBudget& budget = size.budget;
  const double gpus = d(memory.tensor_parallel);
  size.weight_bytes = budget.weight_bytes * gpus;
  size.kv_bytes_per_token = budget.kv_bytes_per_token * gpus;
  size.kv_bytes = d(query.batch) * d(query.context) * size.kv_bytes_per_token;
  const std::int64_t blocks_each = (query.context + memory.block_size - 1) / memory.block_size;
  const double blocks = d(query.batch) * d(blocks_each) + 1;
  size.kv_padding_bytes = blocks * d(memory.block_size) * size.kv_bytes_per_token - size.kv_bytes;
  size.activation_bytes = budget.activation_bytes * gpus;
  size.workspace_bytes = budget.overhead_bytes * gpus;
  size.max_batch = std::max<std::int64_t>(0, (budget.num_gpu_blocks - 1) / blocks_each);
  size.memory_bytes = budget.memory_bytes * gpus;
  size.usable_bytes = budget.requested_bytes * gpus;
  size.total_bytes = size.weight_bytes + size.kv_bytes + size.kv_padding_bytes +
                     size.activation_bytes + size.workspace_bytes;
  add_limits(model, hardware, query, size);
  return size;
}

std::vector<BatchPoint> batch_curve(const ModelSpec& model, const HardwareSpec& hardware,
                                    const SizeQuery& query, const DeploymentSize& size) {
  std::int64_t last = size.max_batch;
  if (size.ridge_batch) {
    const auto ridge_batch = static_cast<std::uint64_t>(*size.ridge_batch);
    last = std::min(last, static_cast<std::int64_t>(std::bit_ceil(ridge_batch)));
  }
  DeploymentSpec deployment;
  deployment.weights = query.memory.weights;
  deployment.kv = query.memory.kv;
  deployment.tensor_parallel = query.memory.tensor_parallel;
  std::vector<BatchPoint> curve;
  if (last < 1) return curve;
  RooflineCostModel cost_model(model, hardware, deployment);
  std::int64_t batch = 1;
  while (true) {
    StepShape shape;
    shape.decode_seqs = shape.decode_tokens = shape.sampled = batch;
    shape.decode_context = batch * query.context;
    const StepCost cost = cost_model.price(shape, Heat{0});
    const double seconds = cost.total.seconds();
    const Limit limit = limit_of(cost.flops / seconds / cost_model.peak_flops(),
                                 cost.hbm_bytes / seconds / cost_model.peak_bytes_per_s());
    curve.push_back({batch, seconds, d(batch) / seconds, 1 / seconds, limit_name(limit)});
    if (batch == last) return curve;
    batch = std::min(2 * batch, last);
  }
}

}  // namespace servesim
