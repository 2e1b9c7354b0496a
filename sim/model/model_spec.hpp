/// The dimensions of a language model, and what follows from them: parameters, bytes, FLOPs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/number_format.hpp"

namespace servesim {

/// Dimensions of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434).
struct MlaSpec {
  std::int64_t q_lora_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

/// Mixture-of-experts feed-forward layers.
struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t intermediate = 0;         ///< of one routed expert
  std::int64_t shared_intermediate = 0;  ///< of all shared experts together; 0: none
  std::int64_t layers = 0;               ///< how many of the model's layers are MoE layers
  bool shared_gate = false;              ///< a hidden x 1 gate on the shared expert (Qwen2-MoE)
  bool expert_bias = false;              ///< biases on the router and the experts (gpt-oss)
  bool router_correction = false;        ///< one bias per expert on the router (DeepSeek-V3)
};

/// A decoder-only transformer with gated feed-forward layers. Field names follow Hugging Face's
/// config.json, shortened.
struct ModelSpec {
  std::string name;
  std::string source;  ///< where the numbers come from
  std::string kind;    ///< datasheet | assumed
  std::string hash;    ///< of the file it was loaded from, which names it beyond doubt
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;  ///< of the dense feed-forward layers
  std::int64_t vocab = 0;
  std::int64_t max_position = 0;    ///< the model's own max_model_len, in tokens
  std::int64_t sliding_window = 0;  ///< tokens a windowed layer sees; 0: no windowed layer
  std::int64_t windowed_layers = 0;
  std::int64_t norms_per_layer = 2;
  std::int64_t other_parameters = 0;  ///< held in memory but not run on text (a vision tower)
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;          ///< per-head RMSNorm of q and k, with head_dim weights each
  bool attention_sinks = false;  ///< one learned logit per head (gpt-oss)
  std::optional<MlaSpec> mla;
  std::optional<MoeSpec> moe;
  std::optional<std::int64_t> published_parameters;

  /// "MHA", "GQA", "MQA" or "MLA".
  std::string_view attention_kind() const;
  std::int64_t moe_layers() const { return moe ? moe->layers : 0; }
  std::int64_t dense_layers() const { return layers - moe_layers(); }
  std::int64_t full_attention_layers() const { return layers - windowed_layers; }

  /// Exact number of weights, norms and biases included, tied embeddings counted once.
  std::int64_t parameter_count() const;
  /// The weights one token passes through: experts_per_token of the routed experts; the input
  /// embedding, a lookup, is not counted unless it doubles as the LM head.
  std::int64_t active_parameters() const;

  /// Bytes of weights on each tensor-parallel rank. Linears are sharded and stored in `format`;
  /// embeddings and LM head are sharded by vocabulary, 16-bit; norms and routers are replicated,
  /// 16-bit; K and V projections are replicated when tp > kv_heads.
  /// REQUIRES: check_tensor_parallel(tp) passes.
  double weight_bytes(WeightFormat format, std::int64_t tp) const;

  /// KV heads on each rank: kv_heads / tp, at least 1 (heads are replicated beyond kv_heads ranks).
  std::int64_t kv_heads_per_rank(std::int64_t tp) const;

  /// Bytes of KV cache per token on each rank: 2 x layers x kv_heads_per_rank x head_dim x bytes;
  /// MLA: layers x (kv_lora_rank + rope dim) x bytes, the same on every rank.
  double kv_bytes_per_token_per_rank(KvFormat format, std::int64_t tp) const;
  /// The same over all ranks.
  double kv_bytes_per_token(KvFormat format, std::int64_t tp) const;

  /// FLOPs of one token's linear layers (2 per active weight), LM head excluded.
  double linear_flops_per_token() const;
  /// FLOPs of the LM head per sampled position.
  double lm_head_flops() const;
  /// FLOPs of one layer's attention per (query token, visible token) pair: QK^T and PV, all heads.
  double attention_flops_per_pair() const;

  /// Throws InputError when the model cannot be sharded over `tp` GPUs.
  void check_tensor_parallel(std::int64_t tp) const;
  /// Replaces the number of KV heads (what-if). Throws InputError when heads is no multiple of it,
  /// or for MLA.
  void override_kv_heads(std::int64_t kv_heads);
};

}  // namespace servesim
