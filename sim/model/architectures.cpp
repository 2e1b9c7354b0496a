#include "model/architectures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace servesim {
namespace {

constexpr std::int64_t kMostChannels = 10'000'000;
constexpr std::int64_t kMostExperts = 65'536;
constexpr std::int64_t kMostTokens = 1'000'000'000;

/// How many of `layer_types` are windowed, or `fallback` when the config has no such list.
std::int64_t windowed_of(ConfigReader& config, const ModelSpec& spec, std::int64_t fallback) {
  const std::vector<std::string> types = config.strings("layer_types");
  if (types.empty()) return fallback;
  if (static_cast<std::int64_t>(types.size()) != spec.layers) {
    throw config.error("layer_types", fmt::format("names {} layers but num_hidden_layers is {}",
                                                  types.size(), spec.layers));
  }
  return std::count_if(types.begin(), types.end(),
                       [](const std::string& type) { return type != "full_attention"; });
}

/// Sets the sliding window, unless it is absent, null, or no shorter than the longest sequence.
void read_window(ConfigReader& config, ModelSpec& spec, const char* key,
                 std::int64_t windowed_layers) {
  if (!config.has_value(key)) return;
  const std::int64_t window = config.integer(key, 1, kMostTokens);
  if (window >= spec.max_position) return;
  spec.sliding_window = window;
  spec.windowed_layers = windowed_of(config, spec, windowed_layers);
  if (spec.windowed_layers == 0) spec.sliding_window = 0;
}

/// Layers 0, step, 2 step, ... counted from the end of each group, as `decoder_sparse_step` means.
std::int64_t every(std::int64_t layers, std::int64_t step) {
  return layers / step;
}

void read_llama(ConfigReader& config, ModelSpec& spec) {
  spec.qkv_bias = spec.output_bias = config.optional("attention_bias", false);
  spec.mlp_bias = config.optional("mlp_bias", false);
}

void read_mistral(ConfigReader& config, ModelSpec& spec) {
  read_window(config, spec, "sliding_window", spec.layers);
}

void read_qwen2_window(ConfigReader& config, ModelSpec& spec) {
  if (!config.optional("use_sliding_window", false)) return;
  const std::int64_t first = config.has_value("max_window_layers")
                                 ? config.integer("max_window_layers", 0, kMostChannels)
                                 : 0;
  read_window(config, spec, "sliding_window", std::max<std::int64_t>(0, spec.layers - first));
}

void read_qwen2(ConfigReader& config, ModelSpec& spec) {
  spec.qkv_bias = true;
  read_qwen2_window(config, spec);
}

void read_qwen3(ConfigReader& config, ModelSpec& spec) {
  spec.qk_norm = true;
  spec.qkv_bias = spec.output_bias = config.optional("attention_bias", false);
  read_qwen2_window(config, spec);
}

void read_gemma2(ConfigReader& config, ModelSpec& spec) {
  spec.norms_per_layer = 4;
  spec.qkv_bias = spec.output_bias = config.optional("attention_bias", false);
  read_window(config, spec, "sliding_window", (spec.layers + 1) / 2);
}

void read_gemma3(ConfigReader& config, ModelSpec& spec) {
  spec.norms_per_layer = 4;
  spec.qk_norm = true;
  const std::int64_t pattern = config.has_value("sliding_window_pattern")
                                   ? config.integer("sliding_window_pattern", 1, kMostChannels)
                                   : 6;
  read_window(config, spec, "sliding_window", spec.layers - spec.layers / pattern);
}

/// The fields common to all mixtures of experts; `experts_key` differs between families.
MoeSpec read_experts(ConfigReader& config, const char* experts_key) {
  MoeSpec moe;
  moe.experts = config.integer(experts_key, 1, kMostExperts);
  moe.experts_per_token = config.integer("num_experts_per_tok", 1, kMostExperts);
  if (moe.experts_per_token > moe.experts) {
    throw config.error(
        "num_experts_per_tok",
        fmt::format("{} exceeds {} ({})", moe.experts_per_token, experts_key, moe.experts));
  }
  return moe;
}

void read_mixtral(ConfigReader& config, ModelSpec& spec) {
  read_mistral(config, spec);
  MoeSpec moe = read_experts(config, "num_local_experts");
  moe.intermediate = spec.intermediate;
  moe.layers = spec.layers;
  spec.moe = moe;
}

void read_qwen_moe(ConfigReader& config, ModelSpec& spec) {
  MoeSpec moe = read_experts(config, "num_experts");
  moe.intermediate = config.integer("moe_intermediate_size", 1, kMostChannels);
  const std::int64_t step = config.has_value("decoder_sparse_step")
                                ? config.integer("decoder_sparse_step", 1, kMostChannels)
                                : 1;
  const auto dense_only = static_cast<std::int64_t>(config.array_size("mlp_only_layers"));
  moe.layers = std::max<std::int64_t>(0, every(spec.layers, step) - dense_only);
  spec.moe = moe;
}

void read_qwen2_moe(ConfigReader& config, ModelSpec& spec) {
  read_qwen2(config, spec);
  read_qwen_moe(config, spec);
  spec.moe->shared_intermediate =
      config.integer("shared_expert_intermediate_size", 1, kMostChannels);
  spec.moe->shared_gate = true;
}

void read_qwen3_moe(ConfigReader& config, ModelSpec& spec) {
  read_qwen3(config, spec);
  read_qwen_moe(config, spec);
}

void read_gpt_oss(ConfigReader& config, ModelSpec& spec) {
  read_window(config, spec, "sliding_window", spec.layers / 2);
  MoeSpec moe = read_experts(config, "num_local_experts");
  moe.intermediate = spec.intermediate;
  moe.layers = spec.layers;
  moe.expert_bias = true;
  spec.moe = moe;
  spec.qkv_bias = spec.output_bias = spec.attention_sinks = true;
}

void read_llama4(ConfigReader& config, ModelSpec& spec) {
  MoeSpec moe = read_experts(config, "num_local_experts");
  moe.intermediate = moe.shared_intermediate = spec.intermediate;
  spec.intermediate = config.integer("intermediate_size_mlp", 1, kMostChannels);
  moe.layers = every(spec.layers, config.integer("interleave_moe_layer_step", 1, kMostChannels));
  spec.moe = moe;
  const std::int64_t interval = config.has_value("no_rope_layer_interval")
                                    ? config.integer("no_rope_layer_interval", 1, kMostChannels)
                                    : 4;
  read_window(config, spec, "attention_chunk_size", spec.layers - spec.layers / interval);
}

void read_deepseek(ConfigReader& config, ModelSpec& spec) {
  MlaSpec mla;
  mla.q_lora_rank =
      config.has_value("q_lora_rank") ? config.integer("q_lora_rank", 0, kMostChannels) : 0;
  mla.kv_lora_rank = config.integer("kv_lora_rank", 1, kMostChannels);
  mla.qk_nope_head_dim = config.integer("qk_nope_head_dim", 1, kMostChannels);
  mla.qk_rope_head_dim = config.integer("qk_rope_head_dim", 1, kMostChannels);
  mla.v_head_dim = config.integer("v_head_dim", 1, kMostChannels);
  spec.mla = mla;
  spec.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  MoeSpec moe = read_experts(config, "n_routed_experts");
  moe.intermediate = config.integer("moe_intermediate_size", 1, kMostChannels);
  if (config.has_value("n_shared_experts")) {
    moe.shared_intermediate =
        config.integer("n_shared_experts", 0, kMostExperts) * moe.intermediate;
  }
  const std::int64_t dense = config.integer("first_k_dense_replace", 0, spec.layers);
  moe.layers = spec.layers - dense;
  moe.router_correction = config.optional<std::string>("topk_method", "") != "greedy";
  spec.moe = moe;
}

constexpr std::array kArchitectures{
    Architecture{"LlamaForCausalLM", "llama", false, read_llama},
    Architecture{"MistralForCausalLM", "mistral", false, read_mistral},
    Architecture{"Qwen2ForCausalLM", "qwen2", false, read_qwen2},
    Architecture{"Qwen3ForCausalLM", "qwen3", false, read_qwen3},
    Architecture{"Phi3ForCausalLM", "phi3", false, read_mistral},
    Architecture{"Gemma2ForCausalLM", "gemma2", true, read_gemma2},
    Architecture{"Gemma3ForCausalLM", "gemma3_text", true, read_gemma3},
    Architecture{"Gemma3ForConditionalGeneration", "gemma3", true, read_gemma3},
    Architecture{"MixtralForCausalLM", "mixtral", false, read_mixtral},
    Architecture{"Qwen2MoeForCausalLM", "qwen2_moe", false, read_qwen2_moe},
    Architecture{"Qwen3MoeForCausalLM", "qwen3_moe", false, read_qwen3_moe},
    Architecture{"GptOssForCausalLM", "gpt_oss", false, read_gpt_oss},
    Architecture{"Llama4ForCausalLM", "llama4_text", false, read_llama4},
    Architecture{"Llama4ForConditionalGeneration", "llama4", false, read_llama4},
    Architecture{"DeepseekV3ForCausalLM", "deepseek_v3", false, read_deepseek},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* const found = std::find_if(
      kArchitectures.begin(), kArchitectures.end(),
      [&](const Architecture& a) { return a.class_name == name || a.model_type == name; });
  return found == kArchitectures.end() ? nullptr : found;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) {
    names.emplace_back(architecture.class_name);
  }
  return names;
}

}  // namespace servesim
