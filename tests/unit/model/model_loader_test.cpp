#include "model/model_loader.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace servesim;
using nlohmann::json;

namespace {

json llama_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 64},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"intermediate_size", 128},
          {"vocab_size", 100},
          {"max_position_embeddings", 512},
          {"rope_theta", 10000.0}};
}

ModelSpec load(const json& config) {
  return model_from_config(config, "test", "test.json");
}

std::string failure(const json& config) {
  try {
    load(config);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string load_failure(const std::string& name) {
  try {
    load_model(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("unknown names are refused with a suggestion", "[model]") {
  CHECK(contains(load_failure("lama-3.1-8b"), "did you mean 'llama-3.1-8b'?"));
  CHECK(contains(load_failure("meta-llama/nothing"), "unknown model"));
  CHECK(contains(load_failure("absent.json"), "cannot be read"));
}

TEST_CASE("an unknown architecture lists the known ones", "[model]") {
  json config = llama_config();
  config["architectures"] = {"MambaForCausalLM"};
  CHECK(contains(failure(config), "MambaForCausalLM"));
  CHECK(contains(failure(config), "LlamaForCausalLM"));
  config.erase("architectures");
  CHECK(contains(failure(config), "architectures"));
  config["model_type"] = "llama";
  CHECK(failure(config).empty());
}

TEST_CASE("missing and absurd dimensions are refused by name", "[model]") {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    json config = llama_config();
    config.erase(key);
    CHECK(contains(failure(config), key));
    for (const json& bad : {json(0), json(-8), json(1.5), json("64"), json(1e18), json(true)}) {
      config[key] = bad;
      INFO(key << " = " << bad);
      CHECK(contains(failure(config), key));
    }
  }
}

TEST_CASE("contradictory dimensions are refused", "[model]") {
  json config = llama_config();
  config["num_key_value_heads"] = 3;
  CHECK(contains(failure(config), "num_key_value_heads"));
  config = llama_config();
  config["num_attention_heads"] = 6;
  CHECK(contains(failure(config), "hidden_size"));
  config["head_dim"] = 16;
  CHECK(failure(config).empty());
  config["layer_types"] = {"full_attention"};
  config["architectures"] = {"MistralForCausalLM"};
  config["sliding_window"] = 128;
  CHECK(contains(failure(config), "layer_types"));
}

TEST_CASE("defaults follow the architecture", "[model]") {
  json config = llama_config();
  config.erase("num_key_value_heads");
  CHECK(load(config).attention_kind() == "MHA");
  CHECK_FALSE(load(config).tied_embeddings);
  config["architectures"] = {"Gemma2ForCausalLM"};
  config["sliding_window"] = 128;
  const ModelSpec gemma = load(config);
  CHECK(gemma.tied_embeddings);
  CHECK(gemma.norms_per_layer == 4);
  CHECK(gemma.windowed_layers == 1);
}

TEST_CASE("families differ in biases, norms and windows", "[model]") {
  json config = llama_config();
  config["architectures"] = {"Qwen2ForCausalLM"};
  CHECK(load(config).qkv_bias);
  config["architectures"] = {"Qwen3ForCausalLM"};
  CHECK(load(config).qk_norm);
  config["architectures"] = {"MistralForCausalLM"};
  config["sliding_window"] = nullptr;
  CHECK(load(config).sliding_window == 0);
  config["sliding_window"] = 256;
  CHECK(load(config).windowed_layers == 2);
  config["sliding_window"] = 4096;  // longer than any sequence
  CHECK(load(config).windowed_layers == 0);
}

TEST_CASE("a multimodal config is read at its text_config", "[model]") {
  json text = llama_config();
  text.erase("architectures");
  const json config{{"architectures", {"Gemma3ForConditionalGeneration"}}, {"text_config", text}};
  CHECK(load(config).hidden == 64);
  CHECK(load(config).qk_norm);
}

TEST_CASE("mixtures of experts", "[model]") {
  json config = llama_config();
  config["architectures"] = {"Qwen3MoeForCausalLM"};
  config["num_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  config["moe_intermediate_size"] = 32;
  CHECK(load(config).moe->layers == 2);
  config["num_experts_per_tok"] = 9;
  CHECK(contains(failure(config), "num_experts_per_tok"));
}
