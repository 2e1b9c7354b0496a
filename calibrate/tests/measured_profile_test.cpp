// From made-up timings to a profile: what made the timings is found again.
#include "measured_profile.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "hardware/hardware_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

constexpr double kProfileRate = 20e9;

TimedCase profile_timing(Kernel kernel, std::int64_t m, std::int64_t n) {
  TimedCase t;
  t.c.kernel = kernel;
  t.c.m = m;
  t.c.n = n;
  t.c.k = n;
  t.c.heads = 16;
  t.c.kv_heads = 8;
  t.c.head_dim = 128;
  t.c.bytes = m * n;
  return t;
}

/// A machine of 20 GB/s, 100 GFLOP/s, 5 us an elementwise kernel at half the rate.
std::vector<TimedCase> profile_timings() {
  std::vector<TimedCase> all;
  const auto add = [&](TimedCase t, double us) {
    t.us = us;
    all.push_back(t);
  };
  const TimedCase stream = profile_timing(Kernel::kRead, 1000, 100'000);
  add(stream, 1e8 / kProfileRate * 1e6);
  TimedCase copy = stream;
  copy.c.kernel = Kernel::kCopy;
  add(copy, 1e8 / kProfileRate * 1e6 * 1.25);
  TimedCase fma = profile_timing(Kernel::kPeakFma, 0, 1'000'000);
  add(fma, 2e6 / 100e9 * 1e6);
  for (const std::int64_t m : {1, 8, 64, 512}) {
    for (const Kernel kernel : {Kernel::kRmsNorm, Kernel::kSiluMul, Kernel::kRope}) {
      const TimedCase t = profile_timing(kernel, m, 2048);
      add(t, 5 + traffic(t.c) / (kProfileRate / 2) * 1e6);
    }
  }
  for (const std::int64_t m : {1, 4, 16}) {
    add(profile_timing(Kernel::kSoftmax, m, 32000), 3 + 32.0 * static_cast<double>(m) * 0.9);
    add(profile_timing(Kernel::kTopKTopP, m, 32000), 3 + 32.0 * static_cast<double>(m) * 0.3);
  }
  for (const std::int64_t n : {512, 1024, 2048, 3072, 4096, 5120, 6144, 8192, 10240}) {
    TimedCase t = profile_timing(Kernel::kGemv, 1, n);
    t.c.dtype = DType::kInt8;
    add(t, 2 + traffic(t.c) / 10e9 * 1e6 + 0.03 * static_cast<double>(n));
  }
  // Wide and narrow weights tell rows from bytes.
  for (const std::int64_t n : {1152, 9728, 896, 17920}) {
    TimedCase t = profile_timing(Kernel::kGemv, 1, n);
    t.c.k = 896;
    t.c.dtype = DType::kInt8;
    add(t, 2 + traffic(t.c) / 10e9 * 1e6 + 0.03 * static_cast<double>(n));
  }
  add(profile_timing(Kernel::kGemm, 64, 2048), 2.0 * 64 * 2048 * 2048 / 60e9 * 1e6);
  return all;
}

Environment profile_cpu() {
  Environment e;
  e.backend = "cpu";
  e.device = "Some CPU";
  e.units = 4;
  e.memory_bytes = 16e9;
  return e;
}

}  // namespace

TEST_CASE("rates are the best that was measured", "[calibrate]") {
  const auto timings = profile_timings();
  CHECK(best_bytes_per_s(timings, Kernel::kRead) == Approx(kProfileRate));
  CHECK(best_flops_per_s(timings, Kernel::kPeakFma) == Approx(100e9));
  CHECK(best_flops_per_s(timings, Kernel::kGemm) == Approx(60e9));
  CHECK(best_bytes_per_s(timings, Kernel::kTriad) == 0);
}

TEST_CASE("elementwise and sampling parameters are recovered", "[calibrate]") {
  const ElementwiseFit fit = fit_elementwise(profile_timings(), kProfileRate);
  CHECK(fit.kernel_us == Approx(5).epsilon(0.02));
  CHECK(fit.bandwidth_efficiency == Approx(0.5).epsilon(0.02));
  CHECK(fit.median_error < 0.01);
  CHECK(fit.rows == 12);
  CHECK(sampling_ns_per_logit(profile_timings()) == Approx(1.2).epsilon(0.01));
  CHECK_THROWS_AS(fit_elementwise({}, kProfileRate), InputError);
  CHECK_THROWS_AS(sampling_ns_per_logit({}), InputError);
}

TEST_CASE("a GEMV costs bytes and rows, and left-out shapes are predicted", "[calibrate]") {
  const auto fits = fit_gemvs(profile_timings());
  REQUIRE(fits.size() == 1);
  CHECK(fits[0].dtype == "int8");
  CHECK(fits[0].form.t0_us == Approx(2).epsilon(0.01));
  CHECK(fits[0].form.us_per_byte == Approx(1e-4).epsilon(0.001));
  CHECK(fits[0].form.row_us == Approx(0.03).epsilon(0.001));
  CHECK(fits[0].rows == 13);
  CHECK_FALSE(fits[0].rows_held_out.empty());
  CHECK(fits[0].held_out_median < 1e-6);
}

TEST_CASE("a GEMV's left-out shapes do not shape the fit that predicts them", "[calibrate]") {
  auto timings = profile_timings();
  const auto before = fit_gemvs(timings);
  REQUIRE_FALSE(before.empty());
  // One left-out shape made three times slower: its own prediction stays.
  const HeldOut& out = before[0].rows_held_out[0];
  for (TimedCase& t : timings) {
    if (t.c.kernel == Kernel::kGemv && describe(t.c) == out.shape) t.us *= 3;
  }
  const auto after = fit_gemvs(timings);
  CHECK(after[0].rows_held_out[0].measured_us == Approx(3 * out.measured_us));
  CHECK(after[0].rows_held_out[0].predicted_us == Approx(out.predicted_us));
  // Too few timings: no fit rather than one through three points.
  timings.erase(std::remove_if(
                    timings.begin(), timings.end(),
                    [](const TimedCase& t) { return t.c.kernel == Kernel::kGemv && t.c.n > 1200; }),
                timings.end());
  CHECK(fit_gemvs(timings).empty());
}

TEST_CASE("a CPU's blocks are measured and make a profile's first half", "[calibrate]") {
  const auto blocks = machine_blocks(profile_cpu(), profile_timings(), {}, "out", "");
  const HardwareSpec spec = hardware_without_kernels(nlohmann::json(blocks), "cpu", "test");
  CHECK(spec.sms == 4);
  CHECK(spec.hbm_bytes_per_s == Approx(kProfileRate));
  CHECK(spec.bf16_flops == Approx(100e9));
  CHECK(spec.pcie_bytes_per_s == Approx(kProfileRate / 1.25 / 2));
  CHECK(blocks["hbm"]["kind"] == "measured");
  // What no server showed is not called measured.
  CHECK(blocks["host"]["kind"] == "assumed");
  CHECK(blocks["heat"]["kind"] == "assumed");
  CHECK_THROWS_AS(machine_blocks(profile_cpu(), {}, {}, "out", ""), InputError);
}

TEST_CASE("a slowing GEMM gives the time constant", "[calibrate]") {
  const auto blocks =
      machine_blocks(profile_cpu(), profile_timings(), {10, 11, 0.05, true}, "out", "");
  CHECK(blocks["heat"]["time_constant_ms"] == 50.0);
  CHECK(blocks["heat"]["kind"] == "fitted");
}

TEST_CASE("a GPU keeps its datasheet, an unknown one needs to be given one", "[calibrate]") {
  Environment e = profile_cpu();
  e.backend = "cuda";
  e.device = "NVIDIA H100 80GB HBM3";
  e.memory_bytes = 84.9e9;
  const auto blocks = machine_blocks(e, profile_timings(), {}, "out", "");
  CHECK(blocks["hbm"]["bytes_per_s"] == 3.35e12);
  CHECK(blocks["hbm"]["kind"] == "datasheet");
  CHECK(blocks["memory"]["bytes"] == 84.9e9);
  CHECK(blocks["host"]["kind"] == "assumed");
  CHECK_FALSE(blocks.contains("gemm"));
  e.device = "Some GPU";
  CHECK_THROWS_AS(machine_blocks(e, profile_timings(), {}, "out", ""), InputError);
}

TEST_CASE("own bursts: cold from the fit, hot from the sustained run, nothing in L2",
          "[calibrate]") {
  Benchmark own;
  own.own = true;
  own.sustained_ratio = 0.8;
  own.tile_scale = 1.0 / 16;
  const MachineRates rates{20e3, 4, 100e3};
  const GemmForm form{rates, false, false, own};
  const GemmParameters p = form.parameters(form.start()).vllm;
  CHECK(p.efficiency_hot == Approx(0.8 * p.efficiency_cold));
  CHECK(p.tile_scale == 1.0 / 16);
  // A burst is cold, however long its kernel.
  const MeasuredGemm large{MeasuredEngine::kVllm, false, {4096, 4096, 4096}, 0};
  GemmParameters cold = p;
  cold.efficiency_hot = cold.efficiency_cold;
  CHECK(predict_us(p, rates, large) == Approx(predict_us(cold, rates, large)).epsilon(1e-3));
  const DecodeForm decode{rates, own};
  CHECK(benchmark_l2_share(decode.parameters(decode.start()), 1e6) < 1e-6);
  const PrefillForm prefill{rates, true, own};
  CHECK(prefill.parameters(prefill.start()).hot_factor == Approx(1.25));
}

TEST_CASE("small tiles make a row cheap on a CPU", "[calibrate]") {
  GemmParameters p;
  p.efficiency_cold = p.efficiency_hot = 1;
  const GemmShape one{1, 4096, 4096};
  const double thread_block = tiled_compute_us(p, 4, 25e3, one, 1);
  p.tile_scale = 1.0 / 16;
  CHECK(tiled_compute_us(p, 4, 25e3, one, 1) == Approx(thread_block / 16).epsilon(0.01));
}
