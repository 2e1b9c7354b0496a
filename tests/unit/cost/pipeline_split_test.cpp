/// Do the stages of a pipeline take together what the step takes, each its share?
#include "cost/pipeline_split.hpp"
#include "core/error.hpp"
#include "cost/linear_cost_model.hpp"
#include "cost/roofline_cost_model.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

RooflineCostModel make(std::int64_t stages, const std::string& hardware = "h100-sxm") {
  DeploymentSpec deployment;
  deployment.pipeline_parallel = stages;
  return {load_model("llama-3.1-8b"), load_hardware(hardware), deployment};
}

double seconds(const StepCost& cost, Component part) {
  return cost.seconds[static_cast<std::size_t>(part)];
}

SimTime sum(std::span<const SimTime> times) {
  SimTime all;
  for (const SimTime time : times) all += time;
  return all;
}

}  // namespace

TEST_CASE("layers are dealt out as vLLM does", "[cost]") {
  CHECK(stage_layers(80, 4) == std::vector<std::int64_t>{20, 20, 20, 20});
  CHECK(stage_layers(10, 4) == std::vector<std::int64_t>{2, 3, 3, 2});  // not the last one first
  CHECK(stage_layers(11, 4) == std::vector<std::int64_t>{3, 3, 3, 2});
  CHECK(stage_layers(7, 1) == std::vector<std::int64_t>{7});
  CHECK_THROWS_AS(stage_layers(4, 5), InputError);
  CHECK_THROWS_AS(stage_layers(4, 0), InputError);
}

TEST_CASE("a step through a pipeline takes as long as without, and the sends", "[cost]") {
  RooflineCostModel whole = make(1);
  RooflineCostModel four = make(4);
  const std::vector<PrefillChunk> chunks{{900, 100}};
  for (const StepShape& shape :
       {StepShape{64, 64, 64'000, {}, 64}, StepShape{8, 8, 9000, chunks, 9}}) {
    const Heat hot{1};  // a GPU that has a fourth of the work heats up less
    const StepCost alone = whole.price(shape, hot);
    const StepCost cost = four.price(shape, hot);
    const double sends = seconds(cost, Component::kPipelineSend);
    CHECK(seconds(alone, Component::kPipelineSend) == 0);
    CHECK(sends > 3 * 5e-6);
    CHECK((cost.total - alone.total).seconds() == Approx(sends).epsilon(0.02));
    CHECK(cost.flops == Approx(alone.flops));

    const auto times = four.stages(cost);
    REQUIRE(times.size() == 4);
    CHECK(sum(times) == cost.total);
    const double head = seconds(cost, Component::kLmHead) + seconds(cost, Component::kSampling);
    CHECK(times[0].seconds() == Approx(times[1].seconds()).epsilon(1e-4));
    CHECK(times[3].seconds() == Approx(times[0].seconds() - sends / 3 + head).epsilon(1e-4));
    CHECK(whole.stages(alone).size() == 1);
    CHECK(whole.stages(alone)[0] == alone.total);
  }
  CHECK(four.peak_flops() == 4 * whole.peak_flops());
}

TEST_CASE("a linear step divides evenly", "[cost]") {
  LinearCostModel model(1000, 10, 4);
  const std::vector<PrefillChunk> chunks{{100, 0}};
  const StepCost cost = model.price({0, 0, 0, chunks, 1}, Heat{});
  const auto times = model.stages(cost);
  REQUIRE(times.size() == 4);
  for (const SimTime time : times) CHECK(time == SimTime::from_us(500));
}

TEST_CASE("a GPU whose sends nobody has timed has no pipelines", "[cost]") {
  HardwareSpec hardware = load_hardware("h100-sxm");
  hardware.kernels.all_reduce.clear();
  DeploymentSpec deployment;
  deployment.pipeline_parallel = 2;
  CHECK_THROWS_AS(RooflineCostModel(load_model("llama-3.1-8b"), hardware, deployment), InputError);
}
