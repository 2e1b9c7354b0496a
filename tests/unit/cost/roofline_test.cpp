#include "cost/roofline_cost_model.hpp"

#include <numeric>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

struct RandomStep {
  std::vector<PrefillChunk> chunks;
  StepShape shape;
};

RandomStep random_step(Rng& rng) {
  RandomStep step;
  const auto chunks = static_cast<std::int64_t>(rng.below(5));
  for (std::int64_t i = 0; i < chunks; ++i) {
    step.chunks.push_back({static_cast<std::int64_t>(1 + rng.below(4000)),
                           static_cast<std::int64_t>(rng.below(2) * rng.below(30000))});
  }
  const auto seqs = static_cast<std::int64_t>(rng.below(300));
  step.shape.decode_seqs = seqs;
  step.shape.decode_tokens = seqs * static_cast<std::int64_t>(1 + rng.below(2) * 3);
  step.shape.decode_context = seqs * static_cast<std::int64_t>(rng.below(8000));
  step.shape.sampled = step.shape.decode_tokens + chunks;
  return step;
}

DeploymentSpec deployment(std::int64_t tp, WeightFormat weights = WeightFormat::k16Bit,
                          KvFormat kv = KvFormat::k16Bit) {
  return {weights, kv, tp};
}

SimTime prefill(RooflineCostModel& model, std::int64_t tokens, std::int64_t context = 0,
                double heat = 0) {
  const PrefillChunk chunk{tokens, context};
  StepShape shape;
  shape.chunks = {&chunk, 1};
  shape.sampled = 1;
  return model.price(shape, Heat{heat}).total;
}

}  // namespace

TEST_CASE("a step's total is the sum of its parts", "[cost]") {
  for (const char* name : {"qwen3-14b", "mixtral-8x7b", "gpt-oss-120b"}) {
    RooflineCostModel model(load_model(name), load_hardware("h100-sxm"), deployment(4));
    Rng rng(3, name);
    for (int i = 0; i < 300; ++i) {
      RandomStep step = random_step(rng);
      step.shape.chunks = step.chunks;
      const StepCost cost = model.price(step.shape, Heat{rng.uniform()});
      const double sum = std::accumulate(cost.seconds.begin(), cost.seconds.end(), 0.0);
      REQUIRE(cost.total.seconds() == Approx(sum).margin(1e-9));
      REQUIRE((cost.total.ns() > 0) == (step.shape.tokens() > 0));
      REQUIRE(cost.compute_bound_s <= sum);
    }
  }
}

TEST_CASE("a step without tokens costs nothing", "[cost]") {
  RooflineCostModel model(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), deployment(1));
  CHECK(model.price(StepShape{}, Heat{1}).total.ns() == 0);
  Heat heat{0.5};
  CHECK(model.decode_step(0, 0, {}, heat).total.ns() == 0);
}

TEST_CASE("no step beats the roofline", "[cost]") {
  for (const char* gpu : {"h100-sxm", "a100-sxm-80g", "l40s", "b200"}) {
    for (const WeightFormat format :
         {WeightFormat::k16Bit, WeightFormat::kFp8, WeightFormat::kInt4}) {
      RooflineCostModel model(load_model("llama-3.1-8b"), load_hardware(gpu),
                              deployment(2, format, KvFormat::kFp8));
      Rng rng(5, gpu);
      for (int i = 0; i < 300; ++i) {
        RandomStep step = random_step(rng);
        step.shape.chunks = step.chunks;
        const StepCost cost = model.price(step.shape, Heat{rng.uniform()});
        INFO(gpu);
        REQUIRE(cost.flops <= cost.total.seconds() * model.peak_flops());
        REQUIRE(cost.hbm_bytes <= cost.total.seconds() * model.peak_bytes_per_s());
      }
    }
  }
}

TEST_CASE("a prefill takes longer with more tokens, more past and more heat", "[cost]") {
  RooflineCostModel model(load_model("llama-3.1-8b"), load_hardware("h100-sxm"), deployment(1));
  SimTime last;
  for (std::int64_t tokens = 1; tokens < 20000; tokens += 37) {
    const SimTime total = prefill(model, tokens);
    REQUIRE(total.seconds() >= 0.995 * last.seconds());  // heat is resolved to 1/32
    last = total;
  }
  CHECK(prefill(model, 512, 8192) > prefill(model, 512));
  CHECK(prefill(model, 4096, 0, 1.0) > prefill(model, 4096, 0, 0.0));
}

TEST_CASE("more bandwidth or compute never slows a step", "[cost]") {
  const HardwareSpec base = load_hardware("h100-sxm");
  HardwareSpec wide = base;
  wide.hbm_bytes_per_s *= 1.5;
  HardwareSpec strong = base;
  strong.bf16_flops *= 1.5;
  const ModelSpec spec = load_model("mixtral-8x7b");
  RooflineCostModel a(spec, base, deployment(2));
  RooflineCostModel b(spec, wide, deployment(2));
  RooflineCostModel c(spec, strong, deployment(2));
  Rng rng(11, "bandwidth");
  for (int i = 0; i < 500; ++i) {
    RandomStep step = random_step(rng);
    step.shape.chunks = step.chunks;
    const Heat heat{rng.uniform()};
    const SimTime total = a.price(step.shape, heat).total;
    REQUIRE(b.price(step.shape, heat).total <= total);
    REQUIRE(c.price(step.shape, heat).total <= total);
  }
}

TEST_CASE("equal arguments give equal results whatever was priced before", "[cost]") {
  const ModelSpec spec = load_model("qwen3-8b");
  const HardwareSpec gpu = load_hardware("h100-sxm");
  RooflineCostModel used(spec, gpu, deployment(1));
  Rng rng(13, "purity");
  for (int i = 0; i < 200; ++i) {
    RandomStep step = random_step(rng);
    step.shape.chunks = step.chunks;
    const Heat heat{rng.uniform()};
    RooflineCostModel fresh(spec, gpu, deployment(1));
    REQUIRE(used.price(step.shape, heat).total == fresh.price(step.shape, heat).total);
  }
}

TEST_CASE("quantisation and tensor parallelism speed decoding up", "[cost]") {
  const ModelSpec spec = load_model("llama-3.1-70b");
  const HardwareSpec gpu = load_hardware("h100-sxm");
  const StepShape shape{8, 8, 8000, {}, 8};
  const auto time = [&](const DeploymentSpec& how) {
    return RooflineCostModel(spec, gpu, how).price(shape, Heat{}).total;
  };
  const SimTime plain = time(deployment(4));
  CHECK(time(deployment(8)) < plain);
  CHECK(time(deployment(4, WeightFormat::kFp8)) < plain);
  CHECK(time(deployment(4, WeightFormat::kInt4)) < time(deployment(4, WeightFormat::kFp8)));
  CHECK_THROWS_AS(time(deployment(3)), InputError);
  CHECK_THROWS_AS(time(deployment(16)), InputError);
}

TEST_CASE("fewer KV heads make long contexts cheaper to decode", "[cost]") {
  const HardwareSpec gpu = load_hardware("h100-sxm");
  const StepShape shape{32, 32, 32 * 8000, {}, 32};
  ModelSpec spec = load_model("llama-3-8b");
  std::vector<SimTime> times;
  for (const std::int64_t kv_heads : {1, 8, 32}) {
    spec.override_kv_heads(kv_heads);
    times.push_back(RooflineCostModel(spec, gpu, deployment(1)).price(shape, Heat{}).total);
  }
  CHECK(times[0] < times[1]);
  CHECK(times[1] < times[2]);
}

TEST_CASE("smaller KV is faster to decode, but integers have to be widened", "[cost]") {
  const ModelSpec model = load_model("llama-3-8b");
  const HardwareSpec gpu = load_hardware("h100-sxm");
  const auto attention = [&](KvFormat format) {
    return RooflineCostModel(model, gpu, deployment(1, WeightFormat::k16Bit, format))
        .price(StepShape{64, 64, 64 * 8000, {}, 64}, Heat{})
        .seconds[static_cast<std::size_t>(Component::kAttentionDecode)];
  };
  CHECK(attention(KvFormat::kFp8) < attention(KvFormat::k16Bit));
  CHECK(attention(KvFormat::kInt8) > attention(KvFormat::kFp8));  // its scales are read too
  CHECK(attention(KvFormat::kInt4) < attention(KvFormat::kInt8));
  CHECK(attention(KvFormat::kInt4) > 0.53 * attention(KvFormat::kInt8));
}

TEST_CASE("what sequences share is read from L2, as far as L2 reaches and delivers", "[cost]") {
  RooflineCostModel model(load_model("llama-2-7b"), load_hardware("h100-sxm"), deployment(1));
  const auto attention = [&](std::int64_t context, SharedContext shared) {
    return model.price(StepShape{64, 64, context, {}, 64, shared}, Heat{})
        .seconds[static_cast<std::size_t>(Component::kAttentionDecode)];
  };
  constexpr std::int64_t kContext = 64 * 700;
  const double apart = attention(kContext, {});
  // Pairs far apart in a batch that streams 700 MB a layer hardly ever meet in 50 MB of L2; ten
  // groups do more often, and one prefix that all share always.
  const double pairs = attention(kContext, {32 * 96, 32 * 96});
  const double groups = attention(kContext, {54 * 96, 10 * 96});
  const double all = attention(kContext, {63 * 96, 96});
  CHECK(pairs < apart);
  CHECK(groups < pairs);
  CHECK(all < groups);
  // The one that all share saves nearly all of its reads.
  CHECK(all == Approx(attention(kContext - 63 * 96, {})).epsilon(0.01));
  // But L2 has a rate too: no more than half of the time goes.
  CHECK(attention(kContext, {63 * 700, 700}) > 0.4 * apart);
  Heat heat{0.3};
  const StepShape shape{64, 64, kContext, {}, 64, {54 * 96, 10 * 96}};
  CHECK(model.decode_step(64, kContext, shape.shared, heat).total ==
        model.price(shape, Heat{0.3}).total);
}

TEST_CASE("mixtures of experts read the experts they reach", "[cost]") {
  RooflineCostModel model(load_model("qwen3-30b-a3b"), load_hardware("h100-sxm"), deployment(1));
  const auto moe = [&](std::int64_t seqs) {
    const StepCost cost = model.price(StepShape{seqs, seqs, 0, {}, seqs}, Heat{});
    return cost.seconds[static_cast<std::size_t>(Component::kMoe)];
  };
  CHECK(moe(16) > 2 * moe(1));     // many more distinct experts
  CHECK(moe(512) < 2 * moe(128));  // nearly all were reached already
}
