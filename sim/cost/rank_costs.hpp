/// The cost of a model's parts on one tensor-parallel rank.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "cost/kernels.hpp"
#include "cost/step_cost_model.hpp"
#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// How a model is stored and sharded.
struct DeploymentSpec {
  WeightFormat weights = WeightFormat::k16Bit;
  KvFormat kv = KvFormat::k16Bit;
  std::int64_t tensor_parallel = 1;
};

/// A sum of kernel costs, kept apart by component. `flops` and `hbm_bytes` are of one rank.
struct PartCosts {
  std::array<double, kComponentCount> seconds{};
  double compute_bound_s = 0;
  double flops = 0;
  double hbm_bytes = 0;

  void add(Component component, const KernelCost& cost) {
    seconds[static_cast<std::size_t>(component)] += cost.seconds;
    compute_bound_s += cost.compute_bound_s;
    flops += cost.flops;
    hbm_bytes += cost.hbm_bytes;
  }
};

/// Coefficients of decode attention for one number of sequences, summed over layers:
/// seconds = launch_s + full_layers * max_q(occupancy_s, per_token_s * tokens)
///                    + windowed_layers * max_q(occupancy_s, per_token_s * min(tokens, window)).
struct DecodeAttention {
  double launch_s = 0;
  double occupancy_s = 0;
  double window_tokens = 0;  ///< sequences x window
};

/// Prices the parts of a step from kernel models. All functions are pure.
class RankCosts {
 public:
  /// Throws InputError when the model cannot be sharded as asked or the GPU has no all-reduce data.
  RankCosts(const ModelSpec& model, const HardwareSpec& hardware, const DeploymentSpec& deployment);

  /// Everything that depends on the number of tokens alone: linear layers, experts, elementwise
  /// kernels and all-reduces of all layers. `heat` in [0, 1].
  PartCosts body(std::int64_t tokens, double heat) const;

  /// LM head, gathering of logits and sampling for `rows` positions.
  PartCosts head(std::int64_t rows, double heat) const;

  /// Attention of all layers over prompt chunks, one kernel a layer.
  KernelCost prefill_attention(std::span<const PrefillChunk> chunks, double heat) const;

  /// Coefficients for `seqs` decoding sequences.
  DecodeAttention decode_attention(std::int64_t seqs) const;
  /// Seconds of decode attention over `tokens` cached tokens (new ones included), all layers.
  double decode_attention_seconds(const DecodeAttention& attention, double tokens) const {
    double seconds = attention.launch_s +
                     full_layers_ * decode_max_(attention.occupancy_s, per_token_s_ * tokens);
    if (windowed_layers_ > 0) {
      seconds +=
          windowed_layers_ * decode_max_(attention.occupancy_s,
                                         per_token_s_ * std::min(tokens, attention.window_tokens));
    }
    return seconds;
  }
  /// Work of decode attention per cached token on one rank. Windowed layers are left out: what they
  /// read depends on each sequence's length, so the sums are lower bounds for models with windows.
  double decode_flops_per_token() const { return decode_flops_per_token_; }
  double decode_bytes_per_token() const { return decode_bytes_per_token_; }

 private:
  struct Sizes {  ///< of one rank
    double hidden = 0;
    double q_heads = 0;
    double kv_heads = 0;
    double head_dim = 0;
    double dense_intermediate = 0;
    double vocab = 0;
    double kv_elements_per_token = 0;  ///< of one layer
  };

  KernelCost attention_linears(double m, double heat) const;
  KernelCost mla_linears(double m, double heat) const;
  KernelCost gated_mlp(double m, double intermediate, double heat) const;
  KernelCost moe_layer(double m, double heat) const;
  KernelCost layer_elementwise(double m) const;
  void set_decode_coefficients();
  KernelCost prefill_layer(std::span<const PrefillChunk> chunks, double heat, double window) const;

  ModelSpec model_;
  HardwareSpec hardware_;
  DeploymentSpec deployment_;
  Sizes rank_;
  GemmKernel linear_;  ///< quantised linear layers
  GemmKernel plain_;   ///< 16-bit: router and LM head
  DecodeAttentionParameters decode_;
  SmoothMax decode_max_;
  SmoothMax prefill_max_;
  std::optional<AllReduceParameters> all_reduce_;
  double extra_kernels_ = 0;
  double full_layers_ = 0;
  double windowed_layers_ = 0;
  double per_token_s_ = 0;
  double decode_flops_per_token_ = 0;
  double decode_bytes_per_token_ = 0;
};

}  // namespace servesim
