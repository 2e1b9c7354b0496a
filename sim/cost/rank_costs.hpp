/// The cost of a model's parts on one tensor-parallel rank.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "cost/deployment.hpp"
#include "cost/kernels.hpp"
#include "cost/step_cost_model.hpp"
#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// Kernel costs of one rank by component.
struct PartCosts {
  std::array<KernelCost, kComponentCount> parts{};

  void add(Component component, const KernelCost& cost) {
    parts[static_cast<std::size_t>(component)] += cost;
  }
  void add(const PartCosts& other) {
    for (std::size_t i = 0; i < kComponentCount; ++i) parts[i] += other.parts[i];
  }
};

/// Coefficients of decode attention for one number of sequences. Per layer and t tokens in all:
/// seconds = launch_s + length_s * t/(t + length_tokens) - saving_s (below short_tokens)
///           + max_q(occupancy_s, per_token_s * t + ramp_s * t/(t + ramp_tokens)),
/// kernel_forms.hpp's decode_attention_us() without L2, in terms of the tokens of all sequences.
struct DecodeAttention {
  double launch_s = 0;
  double occupancy_s = 0;
  double length_tokens = 1;
  double short_tokens = 0;         ///< 0: no saving
  double full_limit_tokens = 0;    ///< what full-attention layers read at most (top-k)
  double window_limit_tokens = 0;  ///< what windowed layers read at most
};

/// Prices the parts of a step from kernel models. All functions are pure.
class RankCosts {
 public:
  /// Throws InputError when the model cannot be sharded as asked, the GPU has no all-reduce data,
  /// or the options contradict each other.
  RankCosts(const ModelSpec& model, const HardwareSpec& hardware, const DeploymentSpec& deployment);

  /// Everything that depends on the number of tokens alone: linear layers, experts, elementwise
  /// kernels and all-reduces of all layers. `heat` in [0, 1].
  PartCosts body(std::int64_t tokens, double heat) const;

  /// LM head, gathering of logits and sampling for `rows` positions.
  PartCosts head(std::int64_t rows, double heat) const;

  /// Drafting of the next step's tokens for `seqs` sequences, attention excluded: a layer and the
  /// LM head per draft token. Nothing without a draft model.
  PartCosts drafting(std::int64_t seqs, double heat) const;

  /// Attention of all layers over prompt chunks, one kernel a layer.
  KernelCost prefill_attention(std::span<const PrefillChunk> chunks, double heat) const;

  /// Coefficients for `seqs` decoding sequences.
  DecodeAttention decode_attention(std::int64_t seqs) const;
  /// Seconds of decode attention over `tokens` cached tokens (new ones included), all layers;
  /// `shared` says which of them are the same token read again, from L2 as far as it reaches.
  double decode_attention_seconds(const DecodeAttention& a, double tokens,
                                  const SharedContext& shared) const {
    if (shared.reads > 0) tokens -= reads_from_l2(tokens, shared);
    double seconds = full_layers_ * decode_layer(a, std::min(tokens, a.full_limit_tokens));
    if (windowed_layers_ > 0) {
      seconds += windowed_layers_ * decode_layer(a, std::min(tokens, a.window_limit_tokens));
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

  double decode_layer(const DecodeAttention& a, double tokens) const {
    double seconds = a.launch_s + length_s_ * tokens / (tokens + a.length_tokens);
    if (tokens < a.short_tokens) seconds -= saving_s_;
    return seconds + decode_max_(a.occupancy_s, per_token_s_ * tokens +
                                                    ramp_s_ * tokens / (tokens + ramp_tokens_));
  }
  double kv_bytes_per_layer() const;
  double reads_from_l2(double tokens, const SharedContext& shared) const;
  KernelCost attention_linears(double m, double heat) const;
  KernelCost mla_linears(double m, double heat) const;
  KernelCost gated_mlp(double m, double intermediate, double heat) const;
  KernelCost moe_layer(double m, double heat) const;
  KernelCost layer_elementwise(double m) const;
  KernelCost sends(double m) const;
  KernelCost logits(double rows, double heat, KernelCost& gather) const;
  void set_sizes();
  void set_decode_coefficients();
  KernelCost prefill_layer(std::span<const PrefillChunk> chunks, double heat, double window) const;

  ModelSpec model_;
  HardwareSpec hardware_;
  DeploymentSpec deployment_;
  Sizes rank_;
  GemmKernel linear_;  ///< quantised linear layers
  GemmKernel plain_;   ///< 16-bit: router and LM head
  DecodeAttentionParameters decode_;
  PrefillAttentionParameters prefill_;
  SmoothMax decode_max_;
  SmoothMax prefill_max_;
  MachineRates machine_;
  std::optional<AllReduceParameters> all_reduce_;
  std::optional<AllReduceAlgorithm> send_;  ///< with a pipeline: an all-reduce over two GPUs
  double full_layers_ = 0;                  ///< with the passes of a draft layer
  double windowed_layers_ = 0;
  double per_token_s_ = 0;
  double l2_tokens_ = 0;  ///< of one layer's KV that stay in L2
  double length_s_ = 0;
  double saving_s_ = 0;
  double ramp_s_ = 0;
  double ramp_tokens_ = 1;
  double decode_flops_per_token_ = 0;
  double decode_bytes_per_token_ = 0;
};

}  // namespace servesim
