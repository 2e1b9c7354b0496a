#include "cost/rank_costs.hpp"

#include <algorithm>
#include <cmath>

namespace servesim {
namespace {

/// FlashAttention's tile edge in tokens.
constexpr double kAttentionTile = 128;
/// Kernels of a MoE layer beside its GEMMs: top-k, sorting tokens by expert, summing the outputs.
constexpr double kMoeKernels = 3;
/// Kernels outside the layers: embedding and final norm.
constexpr double kOuterKernels = 2;
/// Quantisation of activations to 8 bits that is not fused into a norm or an activation.
constexpr double kQuantKernels = 1;

double d(std::int64_t value) {
  return static_cast<double>(value);
}

/// The tensor-core peak that weights of `format` are computed at, if it is an 8-bit one.
std::optional<double> peak_8bit(const HardwareSpec& hardware, WeightFormat format) {
  if (format == WeightFormat::kFp8) return hardware.fp8_flops;
  if (format == WeightFormat::kInt8) return hardware.int8_flops;
  return std::nullopt;
}

GemmKernel linear_kernel(const HardwareSpec& hardware, WeightFormat format) {
  const double weight_bytes = bytes_per_weight(format);
  if (const std::optional<double> peak = peak_8bit(hardware, format)) {
    return {hardware.gemm_8bit.value_or(hardware.gemm), hardware, *peak, weight_bytes, 1};
  }
  return {hardware.gemm, hardware, hardware.bf16_flops, weight_bytes, kBytes16};
}

/// Time of a 128 x 128 attention tile against head size 128. Below 128 only half of it (the
/// products) shrinks, since the softmax works on the scores whatever the head size.
double head_dim_factor(double head_dim) {
  return head_dim < 128 ? 0.5 + 0.5 * head_dim / 128 : head_dim / 128;
}

/// Tokens that a query of a chunk of x tokens with past p sees on average, in a window of w.
double mean_visible(double x, double p, double w) {
  if (p + x <= w) return p + x / 2;
  if (p >= w) return w;
  const double growing = w - p;  // queries that still see everything before them
  return (growing * (p + growing / 2) + (x - growing) * w) / x;
}

}  // namespace

RankCosts::RankCosts(const ModelSpec& model, const HardwareSpec& hardware,
                     const DeploymentSpec& deployment)
    : model_(model),
      hardware_(hardware),
      deployment_(deployment),
      linear_(linear_kernel(hardware, deployment.weights)),
      plain_(hardware.gemm, hardware, hardware.bf16_flops, kBytes16, kBytes16),
      decode_(deployment.kv == KvFormat::k8Bit
                  ? hardware.decode_attention_8bit.value_or(hardware.decode_attention)
                  : hardware.decode_attention),
      decode_max_(decode_.smoothness),
      prefill_max_(hardware.prefill_attention.smoothness) {
  const std::int64_t tp = deployment.tensor_parallel;
  model.check_tensor_parallel(tp);
  if (tp > 1) all_reduce_ = hardware.all_reduce_for(tp);
  if (peak_8bit(hardware, deployment.weights)) extra_kernels_ = kQuantKernels;
  rank_.hidden = d(model.hidden);
  rank_.q_heads = d(model.heads / tp);
  rank_.kv_heads = model.mla ? rank_.q_heads : d(model.kv_heads_per_rank(tp));
  rank_.head_dim = model.mla ? d(model.head_dim + model.mla->v_head_dim) / 2 : d(model.head_dim);
  rank_.dense_intermediate = d(model.intermediate / tp);
  rank_.vocab = std::ceil(d(model.vocab) / d(tp));
  rank_.kv_elements_per_token = model.mla ? d(model.mla->kv_lora_rank + model.mla->qk_rope_head_dim)
                                          : 2 * rank_.kv_heads * rank_.head_dim;
  set_decode_coefficients();
}

void RankCosts::set_decode_coefficients() {
  full_layers_ = d(model_.full_attention_layers());
  windowed_layers_ = d(model_.windowed_layers);
  const double bytes = rank_.kv_elements_per_token * bytes_per_element(deployment_.kv);
  per_token_s_ = bytes / (decode_.bandwidth_efficiency * hardware_.hbm_bytes_per_s);
  if (model_.mla) {
    // Absorbed MLA multiplies every head with the shared latent, near the ridge point.
    const double flops =
        2 * rank_.q_heads * d(2 * model_.mla->kv_lora_rank + model_.mla->qk_rope_head_dim);
    per_token_s_ =
        std::max(per_token_s_, flops / (hardware_.gemm.efficiency_hot * hardware_.bf16_flops));
  }
  decode_flops_per_token_ =
      full_layers_ * model_.attention_flops_per_pair() / d(deployment_.tensor_parallel);
  decode_bytes_per_token_ = full_layers_ * bytes;
}

KernelCost RankCosts::mla_linears(double m, double heat) const {
  const MlaSpec& a = *model_.mla;
  const double q_dim = rank_.q_heads * d(a.qk_nope_head_dim + a.qk_rope_head_dim);
  KernelCost cost =
      linear_({m, d(a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim), rank_.hidden}, heat);
  cost += linear_({m, q_dim, a.q_lora_rank > 0 ? d(a.q_lora_rank) : rank_.hidden}, heat);
  cost +=
      linear_({m, rank_.q_heads * d(a.qk_nope_head_dim + a.v_head_dim), d(a.kv_lora_rank)}, heat);
  cost += linear_({m, rank_.hidden, rank_.q_heads * d(a.v_head_dim)}, heat);
  return cost;
}

KernelCost RankCosts::attention_linears(double m, double heat) const {
  if (model_.mla) return mla_linears(m, heat);
  const double q_dim = rank_.q_heads * rank_.head_dim;
  KernelCost cost = linear_({m, q_dim + rank_.kv_elements_per_token, rank_.hidden}, heat);
  cost += linear_({m, rank_.hidden, q_dim}, heat);
  return cost;
}

KernelCost RankCosts::gated_mlp(double m, double intermediate, double heat) const {
  KernelCost cost = linear_({m, 2 * intermediate, rank_.hidden}, heat);
  cost += linear_({m, rank_.hidden, intermediate}, heat);
  return cost;
}

KernelCost RankCosts::moe_layer(double m, double heat) const {
  const MoeSpec& moe = *model_.moe;
  const double tp = d(deployment_.tensor_parallel);
  const double chosen = d(moe.experts_per_token);
  const double experts = d(moe.experts);
  // Expected number of distinct experts when each token chooses at random.
  const double active = experts * (1 - std::pow(1 - chosen / experts, m));
  const double per_expert = m * chosen / active;
  const double intermediate = d(moe.intermediate) / tp;
  KernelCost cost = plain_({m, experts, rank_.hidden}, heat);
  cost += linear_({per_expert, 2 * intermediate, rank_.hidden, active}, heat);
  cost += linear_({per_expert, rank_.hidden, intermediate, active}, heat);
  if (moe.shared_intermediate > 0) cost += gated_mlp(m, d(moe.shared_intermediate) / tp, heat);
  const double routed = m * chosen;
  cost += elementwise(hardware_, kMoeKernels,
                      kBytes16 * routed * (3 * intermediate + 2 * rank_.hidden));
  return cost;
}

KernelCost RankCosts::layer_elementwise(double m) const {
  // Fused residual-add and norm: two reads, two writes. Rotary embedding: q and k in and out.
  const double norms = 4 * rank_.hidden * d(model_.norms_per_layer);
  const double rotary = 2 * (rank_.q_heads * rank_.head_dim + rank_.kv_elements_per_token);
  return elementwise(hardware_, hardware_.elementwise.kernels_per_layer + extra_kernels_,
                     kBytes16 * m * (norms + rotary));
}

PartCosts RankCosts::body(std::int64_t tokens, double heat) const {
  PartCosts parts;
  if (tokens <= 0) return parts;
  const double m = d(tokens);
  const double layers = d(model_.layers);
  parts.add(Component::kGemm, attention_linears(m, heat) * layers);
  if (model_.dense_layers() > 0) {
    const double dense = d(model_.dense_layers());
    parts.add(Component::kGemm, gated_mlp(m, rank_.dense_intermediate, heat) * dense);
    parts.add(Component::kElementwise,
              elementwise(hardware_, 0, dense * kBytes16 * m * 3 * rank_.dense_intermediate));
  }
  if (model_.moe) parts.add(Component::kMoe, moe_layer(m, heat) * d(model_.moe->layers));
  parts.add(Component::kElementwise, layer_elementwise(m) * layers);
  parts.add(Component::kElementwise,
            elementwise(hardware_, kOuterKernels, kBytes16 * m * 4 * rank_.hidden));
  if (all_reduce_) {
    KernelCost cost;
    cost.seconds = 2 * layers * all_reduce_seconds(*all_reduce_, kBytes16 * m * rank_.hidden);
    parts.add(Component::kAllReduce, cost);
  }
  return parts;
}

PartCosts RankCosts::head(std::int64_t rows, double heat) const {
  PartCosts parts;
  if (rows <= 0) return parts;
  const double m = d(rows);
  parts.add(Component::kLmHead, plain_({m, rank_.vocab, rank_.hidden}, heat));
  KernelCost sampling;
  sampling.seconds = m * d(model_.vocab) * hardware_.sampling_ns_per_logit * 1e-9;
  parts.add(Component::kSampling, sampling);
  if (all_reduce_) {
    // Gathering the logits moves half of what an all-reduce of their size does.
    KernelCost gather;
    gather.seconds = all_reduce_seconds(*all_reduce_, kBytes16 * m * d(model_.vocab) / 2);
    parts.add(Component::kAllReduce, gather);
  }
  return parts;
}

DecodeAttention RankCosts::decode_attention(std::int64_t seqs) const {
  DecodeAttention attention;
  if (seqs <= 0) return attention;
  const double kv_heads = model_.mla ? 1 : rank_.kv_heads;
  const double per_sm = d(seqs) * kv_heads / d(hardware_.sms);
  attention.launch_s = (full_layers_ + windowed_layers_) * decode_.t0_us * 1e-6;
  attention.occupancy_s =
      decode_.per_head_us * 1e-6 * std::max(per_sm - decode_.free_heads_per_sm, 0.0);
  attention.window_tokens = d(seqs) * d(model_.sliding_window);
  return attention;
}

KernelCost RankCosts::prefill_layer(std::span<const PrefillChunk> chunks, double heat,
                                    double window) const {
  const PrefillAttentionParameters& p = hardware_.prefill_attention;
  const double group = rank_.q_heads / rank_.kv_heads;
  const double tile_s =
      p.tile_us * 1e-6 * (1 + (p.hot_factor - 1) * heat) * head_dim_factor(rank_.head_dim);
  const double kv_bytes = rank_.kv_elements_per_token * bytes_per_element(deployment_.kv);
  const double query_bytes = 2 * rank_.q_heads * rank_.head_dim * kBytes16;  // q in, output out
  const double flops_per_pair = model_.attention_flops_per_pair() / d(deployment_.tensor_parallel);
  double tiles = 0;
  double longest = 0;
  KernelCost cost;
  for (const PrefillChunk& chunk : chunks) {
    const double x = d(chunk.tokens);
    const double past = d(chunk.context);
    if (!(x > 0)) continue;
    const double visible = mean_visible(x, past, window);
    const double span = (visible + 64 / group) / kAttentionTile;
    tiles += std::ceil(x * group / kAttentionTile) * (span + p.tile_overhead);
    longest = std::max(longest, std::min(x + past, window) / kAttentionTile + p.tile_overhead);
    cost.flops += x * visible * flops_per_pair;
    cost.hbm_bytes += x * query_bytes + std::min(x + past, x + window) * kv_bytes;
  }
  const double work_s = rank_.kv_heads * tiles * tile_s / d(hardware_.sms);
  const double compute_s = prefill_max_(work_s, longest * tile_s * p.longest_weight);
  const double memory_s = cost.hbm_bytes / hardware_.hbm_bytes_per_s;
  const double limit_s = prefill_max_(compute_s, memory_s);
  cost.seconds = p.t0_us * 1e-6 + limit_s;
  cost.compute_bound_s = limit_s * prefill_max_.share(compute_s, memory_s);
  return cost;
}

KernelCost RankCosts::prefill_attention(std::span<const PrefillChunk> chunks, double heat) const {
  constexpr double kNoWindow = 1e18;
  KernelCost cost;
  if (chunks.empty()) return cost;
  if (full_layers_ > 0) cost += prefill_layer(chunks, heat, kNoWindow) * full_layers_;
  if (windowed_layers_ > 0) {
    cost += prefill_layer(chunks, heat, d(model_.sliding_window)) * windowed_layers_;
  }
  return cost;
}

}  // namespace servesim
