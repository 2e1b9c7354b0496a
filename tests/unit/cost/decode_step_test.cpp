#include "core/rng.hpp"
#include "cost/roofline_cost_model.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

StepShape decode_shape(std::int64_t seqs, std::int64_t context) {
  return StepShape{seqs, seqs, context, {}, seqs};
}

RooflineCostModel make(const std::string& model, std::int64_t tp = 1) {
  DeploymentSpec deployment;
  deployment.tensor_parallel = tp;
  return {load_model(model), load_hardware("h100-sxm"), deployment};
}

}  // namespace

TEST_CASE("decode_step() equals price() followed by next_heat()", "[cost]") {
  for (const char* name : {"llama-3.1-8b", "llama-2-7b", "gpt-oss-20b", "deepseek-v3"}) {
    RooflineCostModel model = make(name, 2);
    RooflineCostModel fresh = make(name, 2);  // priced in another order
    Rng rng(7, name);
    for (int i = 0; i < 500; ++i) {
      const auto seqs = static_cast<std::int64_t>(1 + rng.below(400));
      const auto context = static_cast<std::int64_t>(rng.below(2'000'000));
      Heat heat{rng.uniform()};
      const StepCost cost = fresh.price(decode_shape(seqs, context), heat);
      const Heat next = fresh.next_heat(heat, cost.compute_bound_s, cost.total);
      const DecodeStep step = model.decode_step(seqs, context, {}, heat);
      INFO(name << " " << seqs << " " << context);
      REQUIRE(step.total == cost.total);
      REQUIRE(heat.x == next.x);
      REQUIRE(step.attention_s ==
              cost.seconds[static_cast<std::size_t>(Component::kAttentionDecode)]);
      const AttentionWork work = model.decode_attention_work();
      const auto tokens = static_cast<double>(context);
      REQUIRE(step.rest->flops + tokens * work.flops == Approx(cost.flops));
      REQUIRE(step.rest->hbm_bytes + tokens * work.hbm_bytes == Approx(cost.hbm_bytes));
      REQUIRE(step.rest->compute_bound_s == cost.compute_bound_s);
    }
  }
}

TEST_CASE("the rest of a decode step stays valid", "[cost]") {
  RooflineCostModel model = make("llama-3.1-8b");
  Heat heat;
  const StepCost* first = model.decode_step(3, 100, {}, heat).rest;
  const SimTime total = first->total;
  for (std::int64_t seqs = 1; seqs < 3000; ++seqs) model.decode_step(seqs, 100 * seqs, {}, heat);
  CHECK(first->total == total);
}

TEST_CASE("decode steps take longer with more sequences and more context", "[cost]") {
  for (const char* name : {"llama-3.1-8b", "gpt-oss-20b", "mixtral-8x7b"}) {
    RooflineCostModel model = make(name, 2);
    SimTime last;
    for (std::int64_t seqs = 1; seqs <= 1024; ++seqs) {
      const SimTime total = model.price(decode_shape(seqs, 500 * seqs), Heat{}).total;
      REQUIRE(total >= last);
      last = total;
    }
    last = SimTime();
    for (std::int64_t context = 0; context < 5'000'000; context += 9973) {
      const SimTime total = model.price(decode_shape(64, context), Heat{}).total;
      REQUIRE(total >= last);
      last = total;
    }
  }
}

TEST_CASE("a batch of one decodes close to the time to read the weights", "[cost]") {
  const ModelSpec spec = load_model("llama-3.1-8b");
  RooflineCostModel model = make("llama-3.1-8b");
  const double read_bytes = spec.weight_bytes(WeightFormat::k16Bit, 1) - 128256.0 * 4096 * 2;
  const double seconds = model.price(decode_shape(1, 0), Heat{}).total.seconds();
  CHECK(seconds > read_bytes / 3.35e12);
  CHECK(seconds < 1.5 * read_bytes / 3.35e12);
}

TEST_CASE("heat follows compute and forgets in pauses", "[cost]") {
  const RooflineCostModel model = make("llama-3.1-8b");
  Heat heat;
  for (int i = 0; i < 100; ++i) {
    const Heat next = model.next_heat(heat, 0.010, SimTime::from_ms(10));
    CHECK(next.x > heat.x);
    heat = next;
  }
  CHECK(heat.x == Approx(1).margin(0.01));
  CHECK(heat.x <= 1);
  CHECK(model.next_heat(heat, 0, SimTime::from_ms(40)).x == Approx(heat.x / 2));
  CHECK(model.next_heat(heat, 0, SimTime::from_ms(400'000)).x < 1e-3);
  CHECK(model.next_heat(heat, 0, SimTime()).x == heat.x);
}
