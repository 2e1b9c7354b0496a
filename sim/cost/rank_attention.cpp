// Attention of one rank: prompt chunks and decoding sequences.
#include <algorithm>
#include <array>
#include <cmath>

#include "cost/rank_costs.hpp"

namespace servesim {
namespace {

constexpr double kNoLimit = 1e18;

double d(std::int64_t value) {
  return static_cast<double>(value);
}

/// Tokens that a query of a chunk of x tokens with past p sees on average, in a window of w.
double mean_visible(double x, double p, double w) {
  if (p + x <= w) return p + x / 2;
  if (p >= w) return w;
  const double growing = w - p;  // queries that still see everything before them
  return (growing * (p + growing / 2) + (x - growing) * w) / x;
}

/// HBM traffic of the scores of naive attention per (query, token) pair and head: written and read
/// before the softmax and after it.
constexpr double kNaiveScoreBytes = 4 * kBytes16;
constexpr double kNaiveKernels = 3;

/// Integer K and V are widened and scaled on the vector units, beside the loads: elements per
/// second of one SM at two operations an element, 64 lanes and 1.4 GHz (NVIDIA A100 whitepaper: 64
/// FP32 lanes an SM, 1.41 GHz boost; later GPUs have more). Assumed: no kernel of this kind is in
/// the tables.
constexpr double kDequantisedPerSmS = 64 * 1.4e9 / 2;

/// 1 - exp(-x) for x >= 0, by linear interpolation: off by less than 1e-5, and cheap enough for
/// every step.
double saturating(double x) {
  constexpr int kPerUnit = 128;
  constexpr int kLongest = 16;
  static const auto table = [] {
    std::array<double, kPerUnit * kLongest + 2> values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = -std::expm1(-static_cast<double>(i) / kPerUnit);
    }
    return values;
  }();
  if (!(x < kLongest)) return 1;
  const double scaled = x * kPerUnit;
  const auto at = static_cast<std::size_t>(scaled);
  return table[at] + (scaled - static_cast<double>(at)) * (table[at + 1] - table[at]);
}

}  // namespace

/// KV bytes of a token in one layer of one rank.
double RankCosts::kv_bytes_per_layer() const {
  const double head = model_.mla ? rank_.kv_elements_per_token : rank_.head_dim;
  return rank_.kv_elements_per_token * bytes_per_element(deployment_.kv, head);
}

void RankCosts::set_decode_coefficients() {
  full_layers_ = d(model_.full_attention_layers() + deployment_.draft_tokens);
  windowed_layers_ = d(model_.windowed_layers);
  double bytes = kv_bytes_per_layer();
  const double kv_bytes = bytes;
  if (deployment_.attention == AttentionKind::kNaive) bytes += kNaiveScoreBytes * rank_.q_heads;
  per_token_s_ = bytes / (decode_.bandwidth_efficiency * hardware_.hbm_bytes_per_s);
  if (needs_dequantisation(deployment_.kv)) {
    const double dequantise_s =
        rank_.kv_elements_per_token / (kDequantisedPerSmS * static_cast<double>(hardware_.sms));
    per_token_s_ = std::max(per_token_s_, dequantise_s);
  }
  if (model_.mla) {
    // Absorbed MLA multiplies every head with the shared latent, near the ridge point.
    const double flops =
        2 * rank_.q_heads * d(2 * model_.mla->kv_lora_rank + model_.mla->qk_rope_head_dim);
    const double efficiency = hardware_.kernels_of(deployment_.kernels).gemm.efficiency_hot;
    per_token_s_ = std::max(per_token_s_, flops / (efficiency * hardware_.bf16_flops));
  }
  ramp_s_ = decode_.ramp_us * 1e-6;
  ramp_tokens_ = decode_.ramp_bytes / kv_bytes;
  l2_tokens_ = decode_.l2_bytes / kv_bytes;
  length_s_ = decode_.length_us * 1e-6;
  saving_s_ = decode_.short_saving_us * 1e-6;
  if (!model_.mla && is_mha(rank_.q_heads, rank_.kv_heads)) {
    per_token_s_ *= decode_.mha_bytes_factor;
    ramp_s_ *= decode_.mha_bytes_factor;
  }
  decode_flops_per_token_ =
      full_layers_ * model_.attention_flops_per_pair() / d(deployment_.tensor_parallel);
  decode_bytes_per_token_ = full_layers_ * bytes;
  if (deployment_.attention_top_k > 0) decode_flops_per_token_ = decode_bytes_per_token_ = 0;
}

DecodeAttention RankCosts::decode_attention(std::int64_t seqs) const {
  DecodeAttention a;
  if (seqs <= 0) return a;
  const double n = d(seqs);
  const double kv_heads = model_.mla ? 1 : rank_.kv_heads;
  a.launch_s = decode_.t0_us * 1e-6;
  if (deployment_.attention == AttentionKind::kNaive) a.launch_s *= kNaiveKernels;
  a.occupancy_s =
      decode_heads_us(decode_, d(hardware_.sms), n, model_.mla ? 2 : rank_.q_heads, kv_heads) *
      1e-6;
  a.length_tokens = n * decode_.length_tokens;
  if (seqs == 1 || kv_heads == 1) a.short_tokens = 128 * n + 1;
  const double top_k = deployment_.attention_top_k > 0 ? d(deployment_.attention_top_k) : kNoLimit;
  a.full_limit_tokens = n * top_k;
  a.window_limit_tokens = n * std::min(d(model_.sliding_window), top_k);
  return a;
}

/// Tokens that need not come from HBM, since another sequence of the step read them shortly before.
/// A layer streams the KV of all sequences once, in the order of the batch, where those that share
/// a token stand at random: between two reads of it lie tokens/sharers others on average,
/// exponentially distributed, and it is still in L2 when they are fewer than L2 holds. What L2
/// delivers at most, hits included, is `l2_speedup` times the HBM rate; both from the kernel
/// tables.
double RankCosts::reads_from_l2(double tokens, const SharedContext& shared) const {
  const double reads = d(shared.reads);
  const double sharers = 1 + reads / d(shared.tokens);
  const double hits = saturating(l2_tokens_ * sharers / tokens);
  const double most = 1 - 1 / (decode_.l2_speedup * decode_.bandwidth_efficiency);
  return std::min(reads * hits, tokens * std::max(most, 0.0));
}

KernelCost RankCosts::prefill_layer(std::span<const PrefillChunk> chunks, double heat,
                                    double window) const {
  const bool naive = deployment_.attention == AttentionKind::kNaive;
  const double kv_bytes = kv_bytes_per_layer();
  const double query_bytes = 2 * rank_.q_heads * rank_.head_dim * kBytes16;  // q in, output out
  const double flops_per_pair = model_.attention_flops_per_pair() / d(deployment_.tensor_parallel);
  PrefillAttentionWork work;
  KernelCost cost;
  for (const PrefillChunk& chunk : chunks) {
    const double x = d(chunk.tokens);
    const double past = d(chunk.context);
    if (!(x > 0)) continue;
    const double visible = naive ? std::min(x + past, window) : mean_visible(x, past, window);
    work.add(prefill_, x, visible, std::min(x + past, window), rank_.q_heads, rank_.kv_heads);
    cost.flops += x * visible * flops_per_pair;
    cost.hbm_bytes += x * query_bytes + std::min(x + past, x + window) * kv_bytes;
    if (naive) cost.hbm_bytes += kNaiveScoreBytes * rank_.q_heads * x * visible;
  }
  work.bytes = cost.hbm_bytes;
  const PrefillAttentionLimits limits = prefill_attention_limits(
      prefill_, machine_, work, head_dim_factor(rank_.head_dim), heat, prefill_max_);
  const double extra_launches = naive ? (kNaiveKernels - 1) * prefill_.t0_us : 0;
  cost.seconds = (limits.total_us + extra_launches) * 1e-6;
  cost.compute_bound_s = (limits.total_us - prefill_.t0_us) * 1e-6 *
                         prefill_max_.share(limits.compute_us, limits.memory_us);
  return cost;
}

KernelCost RankCosts::prefill_attention(std::span<const PrefillChunk> chunks, double heat) const {
  KernelCost cost;
  if (chunks.empty()) return cost;
  const double top_k = deployment_.attention_top_k > 0 ? d(deployment_.attention_top_k) : kNoLimit;
  if (full_layers_ > 0) cost += prefill_layer(chunks, heat, top_k) * full_layers_;
  if (windowed_layers_ > 0) {
    cost +=
        prefill_layer(chunks, heat, std::min(d(model_.sliding_window), top_k)) * windowed_layers_;
  }
  return cost;
}

}  // namespace servesim
