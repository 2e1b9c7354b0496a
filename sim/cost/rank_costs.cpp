#include "cost/rank_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace servesim {
namespace {

/// Kernels of a MoE layer beside its GEMMs: top-k, sorting tokens by expert, summing the outputs.
constexpr double kMoeKernels = 3;
/// Kernels outside the layers: embedding and final norm.
constexpr double kOuterKernels = 2;

double d(std::int64_t value) {
  return static_cast<double>(value);
}

/// The tensor-core peak that weights of `format` are computed at, if it is an 8-bit one.
std::optional<double> peak_8bit(const HardwareSpec& hardware, WeightFormat format) {
  if (format == WeightFormat::kFp8) return hardware.fp8_flops;
  if (format == WeightFormat::kInt8) return hardware.int8_flops;
  return std::nullopt;
}

GemmKernel linear_kernel(const HardwareSpec& hardware, const DeploymentSpec& deployment) {
  const KernelSet& set = hardware.kernels_of(deployment.kernels);
  const double weight_bytes = bytes_per_weight(deployment.weights);
  if (const std::optional<double> peak = peak_8bit(hardware, deployment.weights)) {
    return {set.gemm_8bit.value_or(set.gemm), hardware, *peak, weight_bytes, 1};
  }
  return {set.gemm, hardware, hardware.bf16_flops, weight_bytes, kBytes16};
}

const DecodeAttentionParameters& decode_parameters(const KernelSet& set, KvFormat kv) {
  return kv != KvFormat::k16Bit && set.decode_attention_8bit ? *set.decode_attention_8bit
                                                             : set.decode_attention;
}

const PrefillAttentionParameters& prefill_parameters(const KernelSet& set, KvFormat kv) {
  return kv != KvFormat::k16Bit && set.prefill_attention_8bit ? *set.prefill_attention_8bit
                                                              : set.prefill_attention;
}

}  // namespace

AttentionKind parse_attention_kind(std::string_view text) {
  if (text == "flash") return AttentionKind::kFlash;
  if (text == "naive") return AttentionKind::kNaive;
  throw unknown_name("attention", text, {"flash", "naive"});
}

RankCosts::RankCosts(const ModelSpec& model, const HardwareSpec& hardware,
                     const DeploymentSpec& deployment)
    : model_(model),
      hardware_(hardware),
      deployment_(deployment),
      linear_(linear_kernel(hardware, deployment)),
      plain_(hardware.kernels_of(deployment.kernels).gemm, hardware, hardware.bf16_flops, kBytes16,
             kBytes16),
      decode_(decode_parameters(hardware.kernels_of(deployment.kernels), deployment.kv)),
      prefill_(prefill_parameters(hardware.kernels_of(deployment.kernels), deployment.kv)),
      decode_max_(decode_.smoothness),
      prefill_max_(prefill_.smoothness),
      machine_(machine_rates(hardware, hardware.bf16_flops)) {
  const std::int64_t tp = deployment.tensor_parallel;
  model.check_tensor_parallel(tp);
  if (deployment.attention_top_k < 0 || deployment.draft_tokens < 0) {
    throw InputError(fmt::format("attention-top-k {} and draft tokens {} must not be negative",
                                 deployment.attention_top_k, deployment.draft_tokens));
  }
  if (tp > 1) {
    all_reduce_ = hardware.all_reduce_for(tp, deployment.kernels);
    if (!deployment.custom_all_reduce) all_reduce_->custom_cap_bytes = 0;
  }
  if (deployment.pipeline_parallel > 1) {
    if (hardware.kernels_of(deployment.kernels).all_reduce.empty()) {
      throw InputError(fmt::format(
          "pipeline-parallel-size {}: the profile of {} has no all-reduce times, from which the "
          "time of a send between stages is taken",
          deployment.pipeline_parallel, hardware.name));
    }
    send_ = hardware.all_reduce_for(2, deployment.kernels).nccl;
  }
  set_sizes();
  set_decode_coefficients();
}

void RankCosts::set_sizes() {
  const std::int64_t tp = deployment_.tensor_parallel;
  rank_.hidden = d(model_.hidden);
  rank_.q_heads = d(model_.heads / tp);
  rank_.kv_heads = model_.mla ? rank_.q_heads : d(model_.kv_heads_per_rank(tp));
  rank_.head_dim =
      model_.mla ? d(model_.head_dim + model_.mla->v_head_dim) / 2 : d(model_.head_dim);
  rank_.dense_intermediate = d(model_.intermediate / tp);
  rank_.vocab = std::ceil(d(model_.vocab) / d(tp));
  rank_.kv_elements_per_token = model_.mla
                                    ? d(model_.mla->kv_lora_rank + model_.mla->qk_rope_head_dim)
                                    : 2 * rank_.kv_heads * rank_.head_dim;
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
  const double kernels = hardware_.elementwise.kernels_per_layer + (model_.qk_norm ? 1 : 0);
  return elementwise(hardware_, kernels, kBytes16 * m * (norms + rotary));
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
    parts.add(Component::kAllReduce,
              all_reduce(*all_reduce_, kBytes16 * m * rank_.hidden) * (2 * layers));
  }
  if (send_) parts.add(Component::kPipelineSend, sends(m));
  return parts;
}

/// Handing hidden states and residual on from stage to stage, each rank its part of them (vLLM's
/// IntermediateTensors). NCCL's all-reduce over two GPUs carries every byte once each way, in two
/// hops; a send is one of them.
KernelCost RankCosts::sends(double m) const {
  constexpr double kTensors = 2;
  const double bytes = kTensors * kBytes16 * m * rank_.hidden / d(deployment_.tensor_parallel);
  KernelCost cost;
  cost.seconds = (all_reduce_us(*send_, bytes) - send_->latency_us / 2) * 1e-6;
  return cost * d(deployment_.pipeline_parallel - 1);
}

/// The LM head; `gather` receives the exchange of logits between ranks.
KernelCost RankCosts::logits(double rows, double heat, KernelCost& gather) const {
  if (all_reduce_) {
    // Gathering the logits moves half of what an all-reduce of their size does.
    gather = all_reduce(*all_reduce_, kBytes16 * rows * d(model_.vocab) / 2);
  }
  return plain_({rows, rank_.vocab, rank_.hidden}, heat);
}

PartCosts RankCosts::head(std::int64_t rows, double heat) const {
  PartCosts parts;
  if (rows <= 0) return parts;
  const double m = d(rows);
  KernelCost gather;
  parts.add(Component::kLmHead, logits(m, heat, gather));
  parts.add(Component::kAllReduce, gather);
  KernelCost sampling;
  sampling.seconds = m * d(model_.vocab) * hardware_.sampling_ns_per_logit * 1e-9;
  parts.add(Component::kSampling, sampling);
  return parts;
}

PartCosts RankCosts::drafting(std::int64_t seqs, double heat) const {
  PartCosts parts;
  if (seqs <= 0 || deployment_.draft_tokens == 0) return parts;
  const double m = d(seqs);
  const double passes = d(deployment_.draft_tokens);
  KernelCost layer = attention_linears(m, heat);
  const double channels = rank_.dense_intermediate > 0
                              ? rank_.dense_intermediate
                              : d(model_.moe->intermediate) / d(deployment_.tensor_parallel);
  layer += gated_mlp(m, channels, heat);
  layer += layer_elementwise(m);
  KernelCost gather;
  layer += logits(m, heat, gather);
  parts.add(Component::kDraft, layer * passes);
  if (all_reduce_) {
    gather += all_reduce(*all_reduce_, kBytes16 * m * rank_.hidden) * 2;
    parts.add(Component::kAllReduce, gather * passes);
  }
  return parts;
}

}  // namespace servesim
