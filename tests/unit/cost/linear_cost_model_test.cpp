#include "cost/linear_cost_model.hpp"

#include <array>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace servesim;

TEST_CASE("a linear step costs base + per_token * tokens, to the nanosecond", "[cost]") {
  LinearCostModel model(5000, 12.345);
  const std::array chunks{PrefillChunk{100, 0}, PrefillChunk{7, 512}};
  StepShape shape;
  shape.decode_seqs = 3;
  shape.decode_tokens = 9;
  shape.decode_context = 1000;
  shape.chunks = chunks;
  shape.sampled = 5;
  const StepCost cost = model.price(shape, Heat{0.5});
  CHECK(cost.total.ns() == 5'000'000 + 116 * 12'345);
  CHECK(cost.seconds[static_cast<std::size_t>(Component::kOther)] ==
        Approx(cost.total.seconds()).epsilon(1e-12));
  CHECK(model.price(StepShape{}, Heat{}).total.ns() == 0);
}

TEST_CASE("a linear decode step depends on the sequences alone", "[cost]") {
  LinearCostModel model(1000, 10);
  CHECK(model.decode_step_is_constant());
  Heat heat;
  const DecodeStep step = model.decode_step(64, 1, {}, heat);
  CHECK(step.total.ns() == 1'640'000);
  CHECK(model.decode_step(64, 1'000'000, {}, heat).total == step.total);
  CHECK(model.decode_step(0, 0, {}, heat).total.ns() == 0);
  model.decode_step(5000, 1, {}, heat);
  CHECK(step.rest->total == step.total);  // stays valid
  CHECK(heat.x == 0);
}

TEST_CASE("linear step times are parsed", "[cost]") {
  StepShape shape;
  shape.decode_seqs = shape.decode_tokens = shape.sampled = 4;
  LinearCostModel model = parse_linear_cost_model("linear:base_us=1000,per_token_us=2.5");
  CHECK(model.price(shape, Heat{}).total.ns() == 1'010'000);
  LinearCostModel swapped = parse_linear_cost_model("linear:per_token_us=2.5,base_us=1000");
  CHECK(swapped.price(shape, Heat{}).total.ns() == 1'010'000);
  for (const char* bad :
       {"linear", "linear:", "linear:base_us=1", "linear:per_token_us=1", "roofline",
        "linear:base_us=1,base_us=2,per_token_us=1", "linear:base_us=x,per_token_us=1",
        "linear:base_us=-1,per_token_us=1", "linear:base_us=0,per_token_us=0",
        "linear:base_us,per_token_us=1", "linear:base_us=1,per_token_us=1,more=2",
        "linear:base_us=nan,per_token_us=1", "linear:base_us=1e300,per_token_us=1"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_linear_cost_model(bad), InputError);
  }
}
