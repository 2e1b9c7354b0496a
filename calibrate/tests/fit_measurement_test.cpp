// From a measured folder to a profile that the simulator takes, with nothing measured for it.
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "folder.hpp"
#include "hardware/hardware_loader.hpp"
#include "support/catch.hpp"
#include "synthetic_run.hpp"
#include "verbs.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

Environment measured_cpu() {
  Environment e;
  e.backend = "cpu";
  e.device = "Some CPU @ 3 GHz";
  e.toolkit = "compiler 12";
  e.gemm_library = "own blocked GEMM";
  e.units = 4;
  e.memory_bytes = 16e9;
  return e;
}

nlohmann::json json_in(const fixtures::Folder& folder, const char* name) {
  return nlohmann::json::parse(read_text(folder.path() + "/" + name));
}

std::string measurement_fault(const fixtures::Folder& folder, const std::string& datasheet = "") {
  try {
    fit_measurement(folder.path(), datasheet, folder.path() + "/profile.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a CPU's folder becomes a profile that predicts what made it", "[calibrate]") {
  const fixtures::Folder folder;
  const auto truth = fixtures::cpu_truth();
  auto m = fixtures::synthetic_run(truth, false, 88);
  m.sustained = fixtures::slowing(0.8);
  write_measurement(folder.path(), m, measured_cpu(), {});
  const std::string path = folder.path() + "/profile.json";
  fit_measurement(folder.path(), "", path);

  const HardwareSpec spec = load_hardware(path);
  CHECK(spec.name == "profile");
  CHECK(spec.sms == 4);
  CHECK(spec.memory_bytes == 16e9);
  CHECK(spec.hbm_bytes_per_s == Approx(20e9).epsilon(0.01));
  CHECK(spec.bf16_flops == Approx(100e9).epsilon(0.01));
  CHECK(spec.elementwise.kernel_us == Approx(5).epsilon(0.02));
  CHECK(spec.elementwise.bandwidth_efficiency == Approx(0.5).epsilon(0.02));
  CHECK(spec.kernels.gemm.tile_scale == 1.0 / 16);
  CHECK(spec.kernels.gemm.efficiency_hot ==
        Approx(0.8 * spec.kernels.gemm.efficiency_cold).epsilon(0.02));
  double worst = 0;
  for (const Timing& t : m.timings) {
    if (t.c.kernel != Kernel::kGemm) continue;
    const double us = predict_us(spec, fixtures::gemm_row(t.c));
    worst = std::max(worst, std::abs(us / t.summary.us - 1));
  }
  CHECK(worst < 0.2);

  const auto profile = json_in(folder, "profile.json");
  CHECK(profile["hbm"]["kind"] == "measured");
  CHECK(profile["gemm"]["kind"] == "fitted");
  CHECK(profile["host"]["kind"] == "assumed");
  CHECK(profile["heat"]["kind"] == "fitted");
  CHECK(profile["heat"]["time_constant_ms"].get<double>() == Approx(100).epsilon(0.1));
  for (const char* block : {"hbm", "gemm", "decode_attention", "prefill_attention", "sampling"}) {
    CHECK(profile[block]["source"].get<std::string>().find("Some CPU @ 3 GHz") !=
          std::string::npos);
  }
}

TEST_CASE("predictions name every shape that was left out, and only those", "[calibrate]") {
  const fixtures::Folder folder;
  const auto truth = fixtures::cpu_truth();
  const auto m = fixtures::synthetic_run(truth, false, 40);
  write_measurement(folder.path(), m, measured_cpu(), {});
  fit_measurement(folder.path(), "", folder.path() + "/profile.json");
  const auto predictions = json_in(folder, "predictions.json");
  std::size_t held = 0, all = 0;
  for (const Timing& t : m.timings) {
    if (t.c.kernel != Kernel::kGemm) continue;
    ++all;
    held += is_held_out(fixtures::gemm_row(t.c)) ? 1 : 0;
  }
  const auto& gemm = predictions["gemm bf16"];
  CHECK(gemm["rows"] == all);
  REQUIRE(gemm["held_out"].size() == held);
  CHECK(held > 0);
  CHECK(gemm["held_out_median_error"].get<double>() < 0.1);
  for (const auto& row : gemm["held_out"]) {
    CHECK(row["predicted_us"].get<double>() > 0);
    CHECK(row["shape"].get<std::string>().find("n=") != std::string::npos);
  }
  // How many they were stands in the profile too.
  const std::string source = json_in(folder, "profile.json")["gemm"]["source"].get<std::string>();
  CHECK(source.find("on the " + std::to_string(held) + " left out") != std::string::npos);
  // The GEMV form's parameters come with it.
  CHECK(predictions["gemv bfloat16"]["bytes_per_s"].get<double>() ==
        Approx(20e9 / 1.2).epsilon(0.02));
}

TEST_CASE("a GPU's folder keeps the datasheet and takes the kernels", "[calibrate]") {
  const fixtures::Folder folder;
  const auto truth = fixtures::gpu_truth();
  Environment e = measured_cpu();
  e.backend = "cuda";
  e.device = "NVIDIA H100 80GB HBM3";
  e.units = 132;
  e.memory_bytes = 84.9e9;
  write_measurement(folder.path(), fixtures::synthetic_run(truth, true, 48), e, {});
  fit_measurement(folder.path(), "", folder.path() + "/h100-measured.json");
  const HardwareSpec spec = load_hardware(folder.path() + "/h100-measured.json");
  CHECK(spec.hbm_bytes_per_s == 3.35e12);
  CHECK(spec.memory_bytes == 84.9e9);
  CHECK(spec.kernels.gemm.tile_scale == 1);
  const auto profile = json_in(folder, "h100-measured.json");
  CHECK(profile["hbm"]["kind"] == "datasheet");
  CHECK(profile["memory"]["kind"] == "measured");
  CHECK(profile["gemm"]["source"].get<std::string>().find("calibrate measure on NVIDIA H100") !=
        std::string::npos);
  CHECK_FALSE(profile.contains("tensorrt_llm"));
  const MeasuredGemm row{MeasuredEngine::kVllm, false, {256, 8192, 8192}, 0};
  CHECK(predict_us(spec, row) == Approx(predict_us(truth.gemm, truth.rates, row)).epsilon(0.1));
}

TEST_CASE("a run cut short says what it lacks", "[calibrate]") {
  const auto truth = fixtures::cpu_truth();
  const auto fault_of = [&](std::size_t most) {
    const fixtures::Folder folder;
    write_measurement(folder.path(), fixtures::synthetic_run(truth, false, most), measured_cpu(),
                      {});
    return measurement_fault(folder);
  };
  CHECK(fault_of(0).find("too few timings for a profile") != std::string::npos);
  CHECK(fault_of(3).find("give more --time-budget") != std::string::npos);
  CHECK(fault_of(9).find("at least 10 are needed") != std::string::npos);
  CHECK(fault_of(20).empty());
}

TEST_CASE("a folder without its files, and a GPU without a datasheet, are refused", "[calibrate]") {
  const fixtures::Folder folder;
  CHECK(measurement_fault(folder).find("environment.json") != std::string::npos);
  Environment e = measured_cpu();
  e.backend = "cuda";
  e.device = "NVIDIA GH200 480GB";
  write_measurement(folder.path(), fixtures::synthetic_run(fixtures::gpu_truth(), true, 20), e, {});
  CHECK(measurement_fault(folder).find("no datasheet is known for 'NVIDIA GH200 480GB'") !=
        std::string::npos);
  CHECK(measurement_fault(folder, "h200-sxm").empty());
  CHECK_THROWS_AS(require_datasheet(e, ""), InputError);
  CHECK_NOTHROW(require_datasheet(e, "h200-sxm"));
  CHECK_NOTHROW(require_datasheet(measured_cpu(), ""));
}
