#include "cost/training_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace servesim {
namespace {

constexpr double kMasterAndMoments = 12;  // bytes a parameter: three 32-bit values

double d(std::int64_t value) {
  return static_cast<double>(value);
}

void check_options(const TrainingShape& shape, const TrainingOptions& o) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto whole = [](const char* flag, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return;
    throw InputError(
        fmt::format("{} {} is out of range; accepted: {} to {}", flag, value, low, high));
  };
  const auto real = [](const char* flag, double value, double high) {
    if (value > 0 && value <= high) return;
    throw InputError(
        fmt::format("{} {} is out of range; accepted: above 0, up to {}", flag, value, high));
  };
  whole("batch", o.batch, 1, kMost);
  whole("context", o.context, 1, kMost);
  whole("num-layers", shape.layers, 1, 100'000);
  whole("hidden-size", shape.hidden, 1, 10'000'000);
  whole("num-heads", shape.heads, 1, shape.hidden);
  whole("checkpoint-segments", o.segments, 0, shape.layers);
  real("activation-factor", o.activation_factor, 1e6);
  real("mfu", o.mfu, 1);
  real("nvme-read-bandwidth", o.nvme_read_bytes_per_s, 1e15);
  real("nvme-write-bandwidth", o.nvme_write_bytes_per_s, 1e15);
  if (o.segments > 0 && o.checkpointing != Checkpointing::kFull) {
    throw InputError("checkpoint-segments belongs to --checkpointing full");
  }
}

/// Bytes of one value of `hidden` for every token, in 16 bits.
double row_bytes(const TrainingShape& shape, const TrainingOptions& o) {
  return d(o.batch) * d(o.context) * d(shape.hidden) * kBytes16;
}

/// The probabilities that the backward pass needs, 16-bit; with dropout its mask and its result
/// too: the 5 a s^2 b of Korthikanti et al.
double score_bytes(const TrainingShape& shape, const TrainingOptions& o) {
  if (o.flash_attention) return 0;
  const double bytes = o.dropout ? kBytes16 + 1 + kBytes16 : kBytes16;
  return bytes * d(shape.heads) * d(o.context) * d(o.context) * d(o.batch);
}

/// What the backward pass will need, and of it what is at work at any time and so must stay in HBM.
struct Activations {
  double kept = 0;
  double working = 0;
};

Activations activations(const TrainingShape& shape, const TrainingOptions& o, TrainingSize& size) {
  const double linear = size.layer_bytes - size.score_bytes;
  switch (o.checkpointing) {
    case Checkpointing::kNone:
      return {d(shape.layers) * size.layer_bytes, 0};
    case Checkpointing::kSelective:
      return {d(shape.layers) * linear, size.score_bytes};
    case Checkpointing::kFull:
      break;
  }
  size.segments = o.segments > 0 ? o.segments
                                 : static_cast<std::int64_t>(std::ceil(std::sqrt(d(shape.layers))));
  const std::int64_t longest = (shape.layers + size.segments - 1) / size.segments;
  return {d(size.segments) * row_bytes(shape, o), d(longest) * size.layer_bytes};
}

void add_compute(const TrainingShape& shape, const HardwareSpec& hardware, const TrainingOptions& o,
                 TrainingSize& size) {
  const double tokens = d(o.batch) * d(o.context);
  // QK^T and PV of all pairs, masked ones included, as MFU is usually counted (arXiv:2204.02311).
  const double core = 4 * d(shape.layers) * tokens * d(o.context) * d(shape.attention_channels);
  size.forward_flops = 2 * shape.active_parameters * tokens + core;
  if (o.checkpointing == Checkpointing::kFull) size.recompute_flops = size.forward_flops;
  if (o.checkpointing == Checkpointing::kSelective) size.recompute_flops = core;
  const double rate = hardware.bf16_flops * o.mfu;
  size.forward_s = size.forward_flops / rate;
  size.backward_s = (2 * size.forward_flops + size.recompute_flops) / rate;
}

void add_transfer(TrainingSize& size, std::string_view what, std::string_view link,
                  std::string_view behind, double bytes, double seconds) {
  const double compute = behind == "forward" ? size.forward_s : size.backward_s;
  size.transfers.push_back({what, link, behind, bytes, seconds, compute});
}

/// Each direction of PCIe carries one stream per phase, so streams do not share.
void offload_optimizer(const HardwareSpec& hardware, const TrainingOptions& o, TrainingSize& size) {
  if (o.offload == OptimizerOffload::kNone) return;
  const double pcie = hardware.pcie_bytes_per_s;
  size.host_bytes += size.gradient_bytes + size.optimizer_bytes;
  add_transfer(size, "gradients out", "pcie", "backward", size.gradient_bytes,
               size.gradient_bytes / pcie);
  add_transfer(size, "updated weights in", "pcie", "forward", size.weight_bytes,
               size.weight_bytes / pcie);
  if (o.offload == OptimizerOffload::kCpu) return;
  add_transfer(size, "optimiser states in and out", "nvme", "backward", 2 * size.optimizer_bytes,
               size.optimizer_bytes / o.nvme_read_bytes_per_s +
                   size.optimizer_bytes / o.nvme_write_bytes_per_s);
}

/// Two layers' activations (segments' inputs) stay: one at work, one in transit.
void offload_activations(const TrainingShape& shape, const HardwareSpec& hardware,
                         const TrainingOptions& o, double kept, TrainingSize& size) {
  if (!o.offload_activations) return;
  const double pieces =
      o.checkpointing == Checkpointing::kFull ? d(size.segments) : d(shape.layers);
  const double moved = kept * std::max(0.0, pieces - 2) / pieces;
  size.host_bytes += moved;
  const double seconds = moved / hardware.pcie_bytes_per_s;
  add_transfer(size, "activations out", "pcie", "forward", moved, seconds);
  add_transfer(size, "activations in", "pcie", "backward", moved, seconds);
}

}  // namespace

TrainingShape training_shape(const ModelSpec& model) {
  const double embedding = model.tied_embeddings ? 0 : d(model.vocab * model.hidden);
  return {model.name,
          d(model.parameter_count()),
          d(model.active_parameters()) + embedding,
          model.layers,
          model.hidden,
          model.heads,
          model.heads * (model.mla ? (model.mla->qk_nope_head_dim + model.mla->qk_rope_head_dim +
                                      model.mla->v_head_dim) /
                                         2
                                   : model.head_dim),
          model.vocab};
}

TrainingShape training_shape(std::int64_t hidden, std::int64_t layers, std::int64_t heads) {
  const double parameters = 12 * d(layers) * d(hidden) * d(hidden);
  return {fmt::format("d={} L={}", hidden, layers),
          parameters,
          parameters,
          layers,
          hidden,
          heads,
          hidden,
          0};
}

double activation_factor_of(const ModelSpec& model) {
  if (model.mla) {
    throw InputError(fmt::format(
        "activation-factor model: {} uses MLA, which is not counted; give a number", model.name));
  }
  const double hidden = d(model.hidden);
  double channels = d(model.dense_layers()) * d(model.intermediate);
  if (model.moe) {
    channels += d(model.moe->layers) * d(model.moe->experts_per_token * model.moe->intermediate +
                                         model.moe->shared_intermediate);
  }
  const double attention = d((2 * model.heads + 2 * model.kv_heads) * model.head_dim);
  return 4 + attention / hidden + 3 * channels / d(model.layers) / hidden;
}

Checkpointing parse_checkpointing(std::string_view text) {
  if (text == "none") return Checkpointing::kNone;
  if (text == "selective") return Checkpointing::kSelective;
  if (text == "full") return Checkpointing::kFull;
  throw unknown_name("checkpointing", text, {"none", "selective", "full"});
}

OptimizerOffload parse_optimizer_offload(std::string_view text) {
  if (text == "none") return OptimizerOffload::kNone;
  if (text == "cpu") return OptimizerOffload::kCpu;
  if (text == "nvme") return OptimizerOffload::kNvme;
  throw unknown_name("offload", text, {"none", "cpu", "nvme"});
}

std::string_view name_of(Checkpointing checkpointing) {
  if (checkpointing == Checkpointing::kNone) return "none";
  return checkpointing == Checkpointing::kFull ? "full" : "selective";
}

std::string_view name_of(OptimizerOffload offload) {
  if (offload == OptimizerOffload::kNone) return "none";
  return offload == OptimizerOffload::kCpu ? "cpu" : "nvme";
}

TrainingSize size_training(const TrainingShape& shape, const HardwareSpec& hardware,
                           const TrainingOptions& options) {
  check_options(shape, options);
  TrainingSize size;
  size.weight_bytes = kBytes16 * shape.parameters;
  size.gradient_bytes = kBytes16 * shape.parameters;
  size.optimizer_bytes = kMasterAndMoments * shape.parameters;
  size.score_bytes = score_bytes(shape, options);
  // With dropout, the masks after projection and MLP: a byte each, half a 16-bit value.
  const double factor = options.activation_factor + (options.dropout ? 1 : 0);
  size.layer_bytes = factor * row_bytes(shape, options) + size.score_bytes;
  const Activations kept = activations(shape, options, size);
  size.activation_bytes = kept.kept + kept.working;
  size.logit_bytes = 4 * d(options.batch) * d(options.context) * d(shape.vocab);
  size.workspace_bytes = hardware.context_bytes;
  size.memory_bytes = hardware.memory_bytes;
  add_compute(shape, hardware, options, size);
  offload_optimizer(hardware, options, size);
  offload_activations(shape, hardware, options, kept.kept, size);
  size.hbm_bytes = size.weight_bytes + size.gradient_bytes + size.optimizer_bytes +
                   size.activation_bytes + size.logit_bytes + size.workspace_bytes -
                   size.host_bytes;
  size.step_s = size.forward_s + size.backward_s;
  for (const Transfer& transfer : size.transfers) size.step_s += transfer.exposed_s();
  return size;
}

}  // namespace servesim
