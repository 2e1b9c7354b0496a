#include "model/model_spec.hpp"

#include "core/error.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

TEST_CASE("every shipped model has exactly the published number of parameters", "[model]") {
  const std::vector<std::string> names = model_names();
  CHECK(names.size() >= 24);
  for (const std::string& name : names) {
    const ModelSpec model = load_model(name);
    INFO(name);
    REQUIRE(model.published_parameters.has_value());
    CHECK(model.parameter_count() == *model.published_parameters);
    CHECK_FALSE(model.source.empty());
    CHECK_FALSE(model.kind.empty());
    CHECK(model.active_parameters() <= model.parameter_count());
  }
}

TEST_CASE("KV bytes per token", "[model]") {
  CHECK(load_model("llama-3-8b").kv_bytes_per_token(KvFormat::k16Bit, 1) == 131072);
  const ModelSpec big = load_model("llama-3-70b");
  CHECK(big.kv_bytes_per_token(KvFormat::k16Bit, 1) == 327680);
  CHECK(big.kv_bytes_per_token(KvFormat::kFp8, 1) == 163840);
  // Heads of 128 elements: two bytes of scale beside 128 values, four beside 64 bytes of them.
  CHECK(big.kv_bytes_per_token(KvFormat::kInt8, 1) == 163840 * 130 / 128);
  CHECK(big.kv_bytes_per_token(KvFormat::kInt4, 1) == 81920 * 68 / 64);
  CHECK(big.kv_bytes_per_token_per_rank(KvFormat::k16Bit, 4) == 81920);
  SECTION("KV heads are replicated beyond kv_heads ranks") {
    CHECK(big.kv_bytes_per_token_per_rank(KvFormat::k16Bit, 16) ==
          big.kv_bytes_per_token_per_rank(KvFormat::k16Bit, 8));
    CHECK(big.kv_bytes_per_token(KvFormat::k16Bit, 16) == 2 * 327680);
  }
  SECTION("MLA is not sharded") {
    const ModelSpec mla = load_model("deepseek-v3");
    CHECK(mla.attention_kind() == "MLA");
    CHECK(mla.kv_bytes_per_token(KvFormat::k16Bit, 1) == 61 * 576 * 2);
    CHECK(mla.kv_bytes_per_token_per_rank(KvFormat::k16Bit, 8) == 61 * 576 * 2);
  }
}

TEST_CASE("attention kinds and active parameters", "[model]") {
  CHECK(load_model("llama-2-7b").attention_kind() == "MHA");
  CHECK(load_model("llama-3-8b").attention_kind() == "GQA");
  const ModelSpec mixtral = load_model("mixtral-8x7b");
  CHECK(static_cast<double>(mixtral.active_parameters()) == Approx(12.9e9).epsilon(0.02));
  const ModelSpec qwen = load_model("qwen3-30b-a3b");
  CHECK(static_cast<double>(qwen.active_parameters()) == Approx(3.3e9).epsilon(0.12));
}

TEST_CASE("weight bytes", "[model]") {
  const ModelSpec model = load_model("llama-3.1-8b");
  const auto parameters = static_cast<double>(model.parameter_count());
  const double full = model.weight_bytes(WeightFormat::k16Bit, 1);
  CHECK(full == Approx(2 * parameters));
  SECTION("tensor parallelism divides all but norms") {
    CHECK(model.weight_bytes(WeightFormat::k16Bit, 8) == Approx(full / 8).epsilon(1e-3));
    CHECK(model.weight_bytes(WeightFormat::k16Bit, 8) > full / 8);
  }
  SECTION("quantisation leaves embeddings and head in 16 bits") {
    const double embeddings = 2.0 * 2 * 128256 * 4096;
    CHECK(model.weight_bytes(WeightFormat::kFp8, 1) ==
          Approx(embeddings + (full - embeddings) / 2).epsilon(1e-3));
    CHECK(model.weight_bytes(WeightFormat::kInt8, 1) == model.weight_bytes(WeightFormat::kFp8, 1));
    CHECK(model.weight_bytes(WeightFormat::kInt4, 1) ==
          Approx(embeddings + (full - embeddings) * (0.25 + 1.0 / 128)).epsilon(1e-3));
  }
}

TEST_CASE("FLOPs per token are twice the weights passed through", "[model]") {
  const ModelSpec model = load_model("llama-3.1-8b");
  const double head = model.lm_head_flops();
  CHECK(model.linear_flops_per_token() + head ==
        Approx(2.0 * static_cast<double>(model.active_parameters())).epsilon(1e-4));
  CHECK(model.attention_flops_per_pair() == 4.0 * 32 * 128);
}

TEST_CASE("tensor parallelism that does not divide the model is refused", "[model]") {
  const ModelSpec model = load_model("qwen2.5-7b");  // 28 heads
  model.check_tensor_parallel(1);
  model.check_tensor_parallel(4);
  CHECK_THROWS_AS(model.check_tensor_parallel(0), InputError);
  CHECK_THROWS_AS(model.check_tensor_parallel(8), InputError);
  CHECK_THROWS_AS(model.check_tensor_parallel(3), InputError);
}

TEST_CASE("the number of KV heads can be overridden", "[model]") {
  ModelSpec model = load_model("llama-3-8b");
  model.override_kv_heads(32);
  CHECK(model.attention_kind() == "MHA");
  CHECK(model.kv_bytes_per_token(KvFormat::k16Bit, 1) == 4 * 131072);
  model.override_kv_heads(1);
  CHECK(model.attention_kind() == "MQA");
  CHECK_THROWS_AS(model.override_kv_heads(7), InputError);
  CHECK_THROWS_AS(model.override_kv_heads(0), InputError);
  ModelSpec mla = load_model("deepseek-v3");
  CHECK_THROWS_AS(mla.override_kv_heads(8), InputError);
}

TEST_CASE("names of formats", "[model]") {
  CHECK(parse_weight_format("none") == WeightFormat::k16Bit);
  CHECK(parse_weight_format("int4") == WeightFormat::kInt4);
  CHECK(parse_kv_format("auto") == KvFormat::k16Bit);
  CHECK(parse_kv_format("fp8") == KvFormat::kFp8);
  CHECK(parse_kv_format("int8") == KvFormat::kInt8);
  CHECK_THROWS_AS(parse_weight_format("int3"), InputError);
  CHECK_THROWS_AS(parse_kv_format("bf8"), InputError);
  check_dtype("auto");
  CHECK_THROWS_AS(check_dtype("float32"), InputError);
}
