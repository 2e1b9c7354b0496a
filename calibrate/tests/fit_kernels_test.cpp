// Fits of whole tables: what made them is found again, and what is held out stays out.
#include "fit_kernels.hpp"

#include "core/error.hpp"
#include "folder.hpp"
#include "hardware/hardware_loader.hpp"
#include "support/catch.hpp"
#include "synthetic_run.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

Environment fitted_gpu() {
  Environment e;
  e.backend = "cuda";
  e.device = "NVIDIA H100 80GB HBM3";
  e.units = 132;
  e.memory_bytes = 85e9;
  return e;
}

FitOptions quick_fit(const Benchmark& benchmark) {
  FitOptions options;
  options.restarts = 2;
  options.steps = 200;
  options.benchmark = benchmark;
  return options;
}

/// Writes a run and fits its kernels to a profile of an H100.
std::vector<FitQuality> fit_run(const Measurement& m, const FitOptions& options,
                                HardwareSpec& hardware) {
  const fixtures::Folder folder;
  write_measurement(folder.path(), m, fitted_gpu(), {});
  const auto in = [&](const char* name) { return folder.path() + "/" + name; };
  return fit_kernels(hardware,
                     {in("gemm.csv"), in("attention_decode.csv"), in("attention_prefill.csv"),
                      in("collectives.csv")},
                     "", options, [](const FitQuality&) {});
}

const FitQuality& quality_of(const std::vector<FitQuality>& all, const std::string& kernel) {
  for (const FitQuality& q : all) {
    if (q.kernel == kernel) return q;
  }
  FAIL("no fit of " << kernel);
  return all.front();
}

}  // namespace

TEST_CASE("kernels whose times follow the forms are fitted within a few per cent", "[calibrate]") {
  const auto truth = fixtures::gpu_truth();
  HardwareSpec hardware = load_hardware("h100-sxm");
  const auto m = fixtures::synthetic_run(truth, true, 80);
  const auto qualities = fit_run(m, quick_fit(truth.benchmark), hardware);
  REQUIRE(qualities.size() == 3);
  for (const FitQuality& q : qualities) {
    INFO(q.kernel);
    CHECK(q.rows >= 48);
    CHECK(q.all < 0.04);
    CHECK(q.held_out < 0.06);
    CHECK(q.held_out_median < 0.06);
    CHECK(q.rows_held_out.size() >= 5);
    CHECK(q.rows_held_out.size() < q.rows / 2);
  }
  // Shapes that no table has.
  for (const double rows : {3.0, 48.0, 700.0}) {
    const MeasuredGemm row{MeasuredEngine::kVllm, false, {rows, 9216, 3072}, 0};
    CHECK(predict_us(hardware.kernels.gemm, truth.rates, row) ==
          Approx(predict_us(truth.gemm, truth.rates, row)).epsilon(0.15));
  }
  CHECK_FALSE(hardware.tensorrt_llm);  // there were no rows of it
  CHECK_FALSE(hardware.kernels.gemm_8bit);
}

TEST_CASE("rows that are to be predicted shape neither the fit nor its choices", "[calibrate]") {
  const auto truth =
      fixtures::truth_of({3.35e6, 132, 989.4e6}, fixtures::gpu_truth().benchmark, false);
  auto m = fixtures::synthetic_run(truth, true, 48);
  HardwareSpec before = load_hardware("h100-sxm"), after = before;
  const auto first = fit_run(m, quick_fit(truth.benchmark), before);
  // Held-out prefills as a kernel that packs heads would take them, and much slower at that.
  for (Timing& t : m.timings) {
    if (t.c.kernel != Kernel::kPrefillAttention) continue;
    if (is_held_out(fixtures::prefill_row(t.c))) t.summary.us *= 10;
  }
  const auto second = fit_run(m, quick_fit(truth.benchmark), after);
  const auto& was = quality_of(first, "attention_prefill bf16 vllm");
  const auto& is = quality_of(second, "attention_prefill bf16 vllm");
  REQUIRE_FALSE(was.rows_held_out.empty());
  REQUIRE(is.rows_held_out.size() == was.rows_held_out.size());
  for (std::size_t i = 0; i < is.rows_held_out.size(); ++i) {
    CHECK(is.rows_held_out[i].predicted_us == was.rows_held_out[i].predicted_us);
    CHECK(is.rows_held_out[i].measured_us ==
          Approx(10 * was.rows_held_out[i].measured_us).epsilon(1e-3));
  }
  CHECK_FALSE(before.kernels.prefill_attention.packs_heads);
  CHECK_FALSE(after.kernels.prefill_attention.packs_heads);
}

TEST_CASE("rows that are to be predicted have no say in whether heads are packed", "[calibrate]") {
  const auto benchmark = fixtures::gpu_truth().benchmark;
  const MachineRates rates{3.35e6, 132, 989.4e6};
  const auto truth = fixtures::truth_of(rates, benchmark, false);
  const auto packing = fixtures::truth_of(rates, benchmark, true);
  auto m = fixtures::synthetic_run(truth, true, 48);
  // Of the rows to learn from, few have grouped heads, where packing shows; the others are as if
  // packed.
  std::size_t grouped = 0;
  m.timings.erase(std::remove_if(m.timings.begin(), m.timings.end(),
                                 [&](Timing& t) {
                                   if (t.c.kernel != Kernel::kPrefillAttention) return false;
                                   if (is_held_out(fixtures::prefill_row(t.c))) {
                                     t.summary.us = fixtures::true_us(packing, t.c);
                                     return false;
                                   }
                                   return t.c.heads != t.c.kv_heads && ++grouped % 4 != 0;
                                 }),
                  m.timings.end());
  HardwareSpec hardware = load_hardware("h100-sxm");
  fit_run(m, quick_fit(benchmark), hardware);
  CHECK_FALSE(hardware.kernels.prefill_attention.packs_heads);
}

TEST_CASE("whether a prefill kernel packs heads is found either way", "[calibrate]") {
  for (const bool packs : {true, false}) {
    const auto truth =
        fixtures::truth_of({3.35e6, 132, 989.4e6}, fixtures::gpu_truth().benchmark, packs);
    HardwareSpec hardware = load_hardware("h100-sxm");
    fit_run(fixtures::synthetic_run(truth, true, 48), quick_fit(truth.benchmark), hardware);
    CHECK(hardware.kernels.prefill_attention.packs_heads == packs);
  }
}

TEST_CASE("one 8-bit block is fitted: fp8 where the GPU has it, else int8", "[calibrate]") {
  const auto truth = fixtures::gpu_truth();
  auto m = fixtures::synthetic_run(truth, true, 40);
  std::vector<Timing> eight;
  for (const Timing& t : m.timings) {
    if (t.c.kernel != Kernel::kGemm) continue;
    for (const DType type : {DType::kFp8, DType::kInt8}) {
      Timing copy = t;
      copy.c.dtype = type;
      copy.summary.us *= type == DType::kFp8 ? 0.6 : 0.7;
      eight.push_back(copy);
    }
  }
  m.timings.insert(m.timings.end(), eight.begin(), eight.end());
  HardwareSpec h100 = load_hardware("h100-sxm");
  const auto qualities = fit_run(m, quick_fit(truth.benchmark), h100);
  CHECK(quality_of(qualities, "gemm fp8").rows == 40);
  CHECK(quality_of(qualities, "gemm bf16").rows == 40);
  REQUIRE(h100.kernels.gemm_8bit);
  CHECK(h100.kernels.gemm_8bit->quantize_us > 0);
  HardwareSpec without_fp8 = load_hardware("h100-sxm");
  without_fp8.fp8_flops.reset();
  CHECK(quality_of(fit_run(m, quick_fit(truth.benchmark), without_fp8), "gemm int8").rows == 40);
}

TEST_CASE("all-reduces are fitted by number of GPUs, from NCCL's rows", "[calibrate]") {
  const auto truth = fixtures::gpu_truth();
  auto m = fixtures::synthetic_run(truth, true, 40);
  const AllReduceAlgorithm of_two{6, 180e9, 12, 3e6}, of_four{9, 140e9, 20, 3e6};
  for (const std::int64_t gpus : {2, 4}) {
    for (std::int64_t bytes = 1 << 10; bytes <= 256 << 20; bytes *= 2) {
      Timing t;
      t.c.kernel = Kernel::kAllReduce;
      t.c.gpus = gpus;
      t.c.bytes = bytes;
      t.summary.us = all_reduce_us(gpus == 2 ? of_two : of_four, fixtures::as_double(bytes));
      m.timings.push_back(t);
    }
  }
  HardwareSpec hardware = load_hardware("h100-sxm");
  const auto qualities = fit_run(m, quick_fit(truth.benchmark), hardware);
  CHECK(quality_of(qualities, "all_reduce x2 nccl").rows == 19);
  REQUIRE(hardware.kernels.all_reduce.count(4) == 1);
  CHECK(hardware.kernels.all_reduce.count(8) == 0);
  for (const double bytes : {3e4, 3e6, 1e8}) {
    CHECK(all_reduce_us(hardware.kernels.all_reduce.at(2).nccl, bytes) ==
          Approx(all_reduce_us(of_two, bytes)).epsilon(0.05));
    CHECK(all_reduce_us(hardware.kernels.all_reduce.at(4).nccl, bytes) ==
          Approx(all_reduce_us(of_four, bytes)).epsilon(0.05));
  }
}

TEST_CASE("a table with too few rows is named with how many are needed", "[calibrate]") {
  const auto truth = fixtures::gpu_truth();
  HardwareSpec hardware = load_hardware("h100-sxm");
  for (const Kernel kernel : {Kernel::kGemm, Kernel::kDecodeAttention, Kernel::kPrefillAttention}) {
    INFO(name_of(kernel));
    auto m = fixtures::synthetic_run(truth, true, 20);
    std::size_t kept = 0;
    m.timings.erase(
        std::remove_if(m.timings.begin(), m.timings.end(),
                       [&](const Timing& t) { return t.c.kernel == kernel && kept++ >= 9; }),
        m.timings.end());
    std::string fault;
    try {
      fit_run(m, quick_fit(truth.benchmark), hardware);
    } catch (const InputError& error) {
      fault = error.what();
    }
    CHECK(fault.find("9 usable rows") != std::string::npos);
    CHECK(fault.find("at least 10") != std::string::npos);
    CHECK(fault.find(".csv") != std::string::npos);
  }
}

TEST_CASE("fits are the same every time", "[calibrate]") {
  const auto truth = fixtures::gpu_truth();
  const auto m = fixtures::synthetic_run(truth, true, 20);
  HardwareSpec first = load_hardware("h100-sxm"), second = first;
  fit_run(m, quick_fit(truth.benchmark), first);
  fit_run(m, quick_fit(truth.benchmark), second);
  CHECK(first.kernels.gemm.t0_us == second.kernels.gemm.t0_us);
  CHECK(first.kernels.decode_attention.ramp_us == second.kernels.decode_attention.ramp_us);
  CHECK(first.kernels.prefill_attention.tile_us == second.kernels.prefill_attention.tile_us);
}
