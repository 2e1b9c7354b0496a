// calibrate fit --timings, and the last step of calibrate measure.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "core/error.hpp"
#include "hardware/hardware_loader.hpp"
#include "measured_profile.hpp"
#include "text.hpp"
#include "verbs.hpp"

namespace servesim::calibrate {
namespace {

using Json = nlohmann::ordered_json;

/// A CPU's registers hold tiles a sixteenth the size of a thread block's.
constexpr double kCpuTileScale = 1.0 / 16;

Json rows_json(const std::vector<HeldOut>& rows) {
  Json all = Json::array();
  for (const HeldOut& row : rows) {
    all.push_back({{"shape", row.shape},
                   {"predicted_us", row.predicted_us},
                   {"measured_us", row.measured_us}});
  }
  return all;
}

void report(const std::string& name, std::size_t rows, const std::vector<HeldOut>& held,
            double held_median, Json& all) {
  fmt::print("{:<30} {:>4} rows, {:>3} left out of a first fit and predicted", name, rows,
             held.size());
  if (!held.empty()) fmt::print(": median error {:.1f} %", 100 * held_median);
  fmt::print("\n");
  std::fflush(stdout);
  Json block{{"rows", rows}};
  if (!held.empty()) block["held_out_median_error"] = held_median;
  block["held_out"] = rows_json(held);
  all[name] = block;
}

}  // namespace

void require_datasheet(const Environment& environment, const std::string& datasheet) {
  datasheet_of(environment, datasheet);
}

void fit_measurement(const std::string& folder, const std::string& datasheet,
                     const std::string& out) {
  const auto in = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  const Environment environment = read_environment(in("environment.json"));
  const std::vector<TimedCase> timings = read_timings(in("timings.csv"));
  const Sustained sustained = read_sustained(in("sustained.csv"));
  Json profile = machine_blocks(environment, timings, sustained, folder, datasheet);
  const std::string name = std::filesystem::path(out).stem().string();
  HardwareSpec hardware = hardware_without_kernels(nlohmann::json(profile), name, out);

  FitOptions options;
  options.benchmark.own = true;
  options.benchmark.sustained_ratio = sustained.ratio();
  if (!environment.cuda()) {
    options.benchmark.tile_scale = kCpuTileScale;
    options.benchmark.lowest_efficiency = 0.02;
  }
  Json predictions;
  predictions["what"] =
      "shapes chosen by a hash of their sizes, left out of a first fit and predicted by it; "
      "measured "
      "in the same run";
  const KernelTables tables{in("gemm.csv"), in("attention_decode.csv"), in("attention_prefill.csv"),
                            in("collectives.csv")};
  const auto qualities = fit_kernels(hardware, tables, "", options, [&](const FitQuality& q) {
    report(q.kernel, q.rows, q.rows_held_out, q.held_out_median, predictions);
  });
  for (const GemvFit& gemv : fit_gemvs(timings)) {
    report("gemv " + gemv.dtype, gemv.rows, gemv.rows_held_out, gemv.held_out_median, predictions);
    Json& block = predictions["gemv " + gemv.dtype];
    block["t0_us"] = gemv.form.t0_us;
    if (gemv.form.us_per_byte > 0) block["bytes_per_s"] = 1e6 / gemv.form.us_per_byte;
    block["row_ns"] = 1e3 * gemv.form.row_us;
  }
  const std::string from = fmt::format("calibrate measure on {} (GEMM: {})", environment.device,
                                       environment.gemm_library);
  profile.update(kernel_blocks(hardware.kernels, [&](const std::string& block) {
    return provenance(block, "vllm", qualities, from);
  }));
  hardware_from_json(nlohmann::json(profile), name, out);  // that it is one
  write_file(out, profile.dump(2) + "\n");
  write_file((std::filesystem::path(out).parent_path() / "predictions.json").string(),
             predictions.dump(2) + "\n");
  fmt::print("profile: {}\n", out);
}

}  // namespace servesim::calibrate
