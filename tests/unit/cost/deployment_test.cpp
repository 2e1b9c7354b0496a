// The options of a deployment that change what a step costs.
#include "core/error.hpp"
#include "cost/explain.hpp"
#include "cost/roofline_cost_model.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

const PrefillChunk kPrompt{4096, 0};

StepCost price(const DeploymentSpec& deployment, const StepShape& shape,
               const char* model = "llama-3.1-8b") {
  return RooflineCostModel(load_model(model), load_hardware("h100-sxm"), deployment)
      .price(shape, Heat{});
}

double part(const StepCost& cost, Component component) {
  return cost.seconds[static_cast<std::size_t>(component)];
}

const StepShape kPrefill{0, 0, 0, {&kPrompt, 1}, 1};
const StepShape kDecode{32, 32, 32 * 8000, {}, 32};

}  // namespace

TEST_CASE("naive attention pays for its scores", "[cost]") {
  DeploymentSpec naive;
  naive.attention = AttentionKind::kNaive;
  CHECK(part(price(naive, kPrefill), Component::kAttentionPrefill) >
        1.5 * part(price({}, kPrefill), Component::kAttentionPrefill));
  CHECK(part(price(naive, kDecode), Component::kAttentionDecode) >
        part(price({}, kDecode), Component::kAttentionDecode));
  CHECK(price(naive, kPrefill).hbm_bytes > price({}, kPrefill).hbm_bytes);
  CHECK(parse_attention_kind("naive") == AttentionKind::kNaive);
  CHECK_THROWS_AS(parse_attention_kind("fast"), InputError);
}

TEST_CASE("top-k attention reads at most k tokens", "[cost]") {
  DeploymentSpec sparse;
  sparse.attention_top_k = 2048;
  const StepShape longer{32, 32, 32 * 80000, {}, 32};
  CHECK(part(price(sparse, longer), Component::kAttentionDecode) ==
        Approx(part(price(sparse, kDecode), Component::kAttentionDecode)));
  CHECK(part(price(sparse, kDecode), Component::kAttentionDecode) <
        part(price({}, kDecode), Component::kAttentionDecode));
  const StepShape shorter{32, 32, 32 * 1000, {}, 32};
  CHECK(price(sparse, shorter).total == price({}, shorter).total);
  CHECK(price(sparse, kPrefill).total < price({}, kPrefill).total);
  sparse.attention_top_k = -1;
  CHECK_THROWS_AS(price(sparse, kDecode), InputError);
}

TEST_CASE("an EAGLE draft costs a layer and a head per token, ngram nothing", "[cost]") {
  DeploymentSpec one, four;
  one.draft_tokens = 1;
  four.draft_tokens = 4;
  const double once = part(price(one, kDecode), Component::kDraft);
  CHECK(once > 0);
  CHECK(part(price(four, kDecode), Component::kDraft) == Approx(4 * once));
  CHECK(part(price({}, kDecode), Component::kDraft) == 0);
  RooflineCostModel model(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), four);
  Heat heat;
  CHECK(model.decode_step(32, 32 * 8000, {}, heat).total == price(four, kDecode).total);
}

TEST_CASE("without the custom all-reduce small messages take longer", "[cost]") {
  DeploymentSpec custom, nccl;
  custom.tensor_parallel = nccl.tensor_parallel = 4;
  nccl.custom_all_reduce = false;
  CHECK(part(price(nccl, kDecode), Component::kAllReduce) >
        1.2 * part(price(custom, kDecode), Component::kAllReduce));
}

TEST_CASE("a long prefill heats itself", "[cost]") {
  RooflineCostModel model(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), {});
  const StepCost cold = model.price(kPrefill, Heat{0});
  const StepCost hot = model.price(kPrefill, Heat{1});
  const PrefillChunk quarter{1024, 0};
  const StepCost part_cold = model.price(StepShape{0, 0, 0, {&quarter, 1}, 1}, Heat{0});
  CHECK(hot.total > cold.total);
  CHECK(part(cold, Component::kGemm) > 4 * 0.98 * part(part_cold, Component::kGemm));
}

TEST_CASE("an explanation adds up and names limits", "[cost]") {
  const StepExplanation prefill =
      explain(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), {}, kPrefill, Heat{});
  CHECK(prefill.total.seconds == Approx(prefill.cost.total.seconds()).margin(2e-9));
  CHECK(prefill.total.flops == Approx(prefill.cost.flops));
  CHECK(prefill.parts.front().component == Component::kGemm);
  CHECK(prefill.parts.front().limit == Limit::kCompute);
  CHECK(prefill.parts.front().intensity > prefill.ridge);
  const StepExplanation decode =
      explain(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), {}, kDecode, Heat{});
  CHECK(decode.total.seconds == Approx(decode.cost.total.seconds()).margin(2e-9));
  for (const PartExplanation& p : decode.parts) {
    CHECK(p.mfu <= 1);
    CHECK(p.mbu <= 1);
    if (p.component == Component::kAttentionDecode) CHECK(p.limit == Limit::kMemory);
  }
}

TEST_CASE("all formats and attention kinds are priced", "[cost]") {
  for (const char* model : {"llama-3.1-8b", "llama-2-7b", "mistral-7b", "gpt-oss-20b",
                            "deepseek-v3", "mixtral-8x22b", "llama-4-scout"}) {
    for (const WeightFormat format :
         {WeightFormat::k16Bit, WeightFormat::kFp8, WeightFormat::kInt8, WeightFormat::kInt4}) {
      DeploymentSpec deployment;
      deployment.weights = format;
      deployment.tensor_parallel = 8;
      INFO(model);
      CHECK(price(deployment, kDecode, model).total.ns() > 0);
      CHECK(price(deployment, kPrefill, model).total.ns() > 0);
    }
  }
}
