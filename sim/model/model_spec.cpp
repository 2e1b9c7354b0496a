#include "model/model_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace servesim {
namespace {

/// Weights of one layer, by how tensor parallelism treats them.
struct LayerWeights {
  double sharded = 0;     ///< quantisable linears, divided by tp
  double replicated = 0;  ///< quantisable linears that every rank holds (MLA down-projections)
  double kv = 0;          ///< K and V projections, divided by min(tp, kv_heads)
  double plain = 0;       ///< norms, biases, routers: 16-bit, replicated
};

LayerWeights attention_weights(const ModelSpec& m) {
  const auto d = [](std::int64_t value) { return static_cast<double>(value); };
  LayerWeights w;
  w.plain = d(m.norms_per_layer * m.hidden);
  if (m.mla) {
    const MlaSpec& a = *m.mla;
    const double qk_dim = d(a.qk_nope_head_dim + a.qk_rope_head_dim);
    const double q_in = d(a.q_lora_rank > 0 ? a.q_lora_rank : m.hidden);
    w.sharded = q_in * d(m.heads) * qk_dim +
                d(a.kv_lora_rank * m.heads * (a.qk_nope_head_dim + a.v_head_dim)) +
                d(m.heads * a.v_head_dim * m.hidden);
    w.replicated = d(m.hidden * (a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim));
    w.plain += d(a.q_lora_rank + a.kv_lora_rank);
    return w;
  }
  w.sharded = 2 * d(m.hidden * m.heads * m.head_dim);
  w.kv = 2 * d(m.hidden * m.kv_heads * m.head_dim);
  if (m.qkv_bias) w.plain += d((m.heads + 2 * m.kv_heads) * m.head_dim);
  if (m.output_bias) w.plain += d(m.hidden);
  if (m.qk_norm) w.plain += d(2 * m.head_dim);
  if (m.attention_sinks) w.plain += d(m.heads);
  return w;
}

double dense_mlp_weights(const ModelSpec& m) {
  return 3 * static_cast<double>(m.hidden * m.intermediate);
}

double dense_mlp_biases(const ModelSpec& m) {
  return m.mlp_bias ? static_cast<double>(2 * m.intermediate + m.hidden) : 0;
}

/// Weights of `experts` routed experts plus the shared ones, biases and router excluded.
double expert_weights(const ModelSpec& m, std::int64_t experts) {
  return 3.0 * static_cast<double>(m.hidden) *
         static_cast<double>(experts * m.moe->intermediate + m.moe->shared_intermediate);
}

/// Router, its biases, and the biases of `experts` experts.
double moe_plain(const ModelSpec& m, std::int64_t experts) {
  const MoeSpec& e = *m.moe;
  auto plain = static_cast<double>(m.hidden * e.experts);
  if (e.shared_gate) plain += static_cast<double>(m.hidden);
  if (e.router_correction) plain += static_cast<double>(e.experts);
  if (e.expert_bias) {
    plain += static_cast<double>(e.experts + experts * (2 * e.intermediate + m.hidden));
  }
  return plain;
}

double count(const ModelSpec& m, std::int64_t experts) {
  const LayerWeights a = attention_weights(m);
  double total = static_cast<double>(m.layers) * (a.sharded + a.replicated + a.kv + a.plain);
  total += static_cast<double>(m.dense_layers()) * (dense_mlp_weights(m) + dense_mlp_biases(m));
  if (m.moe) {
    total +=
        static_cast<double>(m.moe->layers) * (expert_weights(m, experts) + moe_plain(m, experts));
  }
  return total + static_cast<double>(m.hidden);  // the final norm
}

}  // namespace

std::string_view ModelSpec::attention_kind() const {
  if (mla) return "MLA";
  if (kv_heads == heads) return "MHA";
  return kv_heads == 1 ? "MQA" : "GQA";
}

std::int64_t ModelSpec::parameter_count() const {
  const std::int64_t embeddings = vocab * hidden * (tied_embeddings ? 1 : 2);
  return static_cast<std::int64_t>(count(*this, moe ? moe->experts : 0)) + embeddings +
         other_parameters;
}

std::int64_t ModelSpec::active_parameters() const {
  return static_cast<std::int64_t>(count(*this, moe ? moe->experts_per_token : 0)) + vocab * hidden;
}

double ModelSpec::weight_bytes(WeightFormat format, std::int64_t tp) const {
  const double per_weight = bytes_per_weight(format);
  const auto ranks = static_cast<double>(tp);
  const LayerWeights a = attention_weights(*this);
  const double kv_ranks =
      static_cast<double>(kv_heads) / static_cast<double>(kv_heads_per_rank(tp));
  double linears =
      static_cast<double>(layers) * (a.sharded / ranks + a.replicated + a.kv / kv_ranks) +
      static_cast<double>(dense_layers()) * dense_mlp_weights(*this) / ranks;
  double plain = static_cast<double>(layers) * a.plain + static_cast<double>(hidden) +
                 static_cast<double>(dense_layers()) * dense_mlp_biases(*this);
  if (moe) {
    linears += static_cast<double>(moe->layers) * expert_weights(*this, moe->experts) / ranks;
    plain += static_cast<double>(moe->layers) * moe_plain(*this, moe->experts);
  }
  plain += static_cast<double>(vocab * hidden * (tied_embeddings ? 1 : 2)) / ranks;
  plain += static_cast<double>(other_parameters) / ranks;
  return linears * per_weight + plain * kBytes16;
}

std::int64_t ModelSpec::kv_heads_per_rank(std::int64_t tp) const {
  return std::max<std::int64_t>(1, kv_heads / tp);
}

double ModelSpec::kv_bytes_per_token_per_rank(KvFormat format, std::int64_t tp) const {
  const std::int64_t elements =
      mla ? mla->kv_lora_rank + mla->qk_rope_head_dim : 2 * kv_heads_per_rank(tp) * head_dim;
  const std::int64_t scaled = mla ? elements : head_dim;  // MLA: the latent is one head
  return static_cast<double>(layers * elements) *
         bytes_per_element(format, static_cast<double>(scaled));
}

double ModelSpec::kv_bytes_per_token(KvFormat format, std::int64_t tp) const {
  return kv_bytes_per_token_per_rank(format, tp) * static_cast<double>(tp);
}

double ModelSpec::linear_flops_per_token() const {
  const LayerWeights a = attention_weights(*this);
  double weights = static_cast<double>(layers) * (a.sharded + a.replicated + a.kv) +
                   static_cast<double>(dense_layers()) * dense_mlp_weights(*this);
  if (moe) {
    weights += static_cast<double>(moe->layers) * (expert_weights(*this, moe->experts_per_token) +
                                                   static_cast<double>(hidden * moe->experts));
  }
  return 2 * weights;
}

double ModelSpec::lm_head_flops() const {
  return 2 * static_cast<double>(hidden * vocab);
}

double ModelSpec::attention_flops_per_pair() const {
  const std::int64_t dims =
      mla ? mla->qk_nope_head_dim + mla->qk_rope_head_dim + mla->v_head_dim : 2 * head_dim;
  return 2 * static_cast<double>(heads * dims);
}

void ModelSpec::check_tensor_parallel(std::int64_t tp) const {
  const auto refuse = [&](std::string_view what, std::int64_t value) {
    return InputError(
        fmt::format("tensor-parallel-size {}: {} has {} {}, which {} GPUs cannot share evenly", tp,
                    name, value, what, tp));
  };
  if (tp < 1) throw InputError(fmt::format("tensor-parallel-size {}: must be at least 1", tp));
  if (heads % tp != 0) throw refuse("attention heads", heads);
  if (!mla && kv_heads % tp != 0 && tp % kv_heads != 0) throw refuse("KV heads", kv_heads);
  if (dense_layers() > 0 && intermediate % tp != 0)
    throw refuse("intermediate channels", intermediate);
  if (moe && moe->intermediate % tp != 0) {
    throw refuse("intermediate channels per expert", moe->intermediate);
  }
}

void ModelSpec::override_kv_heads(std::int64_t count) {
  if (mla) throw InputError(fmt::format("num-kv-heads: {} uses MLA, which has no KV heads", name));
  if (count < 1 || heads % count != 0) {
    throw InputError(
        fmt::format("num-kv-heads {}: must divide {}'s {} attention heads", count, name, heads));
  }
  kv_heads = count;
}

}  // namespace servesim
