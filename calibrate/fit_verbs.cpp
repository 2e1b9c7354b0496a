// calibrate fit and derive: profiles from timings, and from other profiles.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/params.hpp"
#include "fit_kernels.hpp"
#include "hardware/hardware_loader.hpp"
#include "measured_profile.hpp"
#include "profile_json.hpp"
#include "text.hpp"
#include "verbs.hpp"

namespace servesim::calibrate {
namespace {

using Json = nlohmann::ordered_json;

struct TableFit {
  KernelTables tables;
  std::string gpu, datasheet, out, data_source;
  bool no_tables = false;
  bool table_by_n = false;
};

std::string stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

void print(const std::vector<ErrorMean>& means) {
  for (const ErrorMean& mean : means) {
    fmt::print("  {:<36} {:>5} rows  MAPE {:>5.1f} %  bias {:>+5.1f} %\n", mean.name, mean.rows,
               100 * mean.mape, 100 * mean.bias);
  }
}

void print_errors(const HardwareSpec& hardware, const TableFit& fit) {
  const auto errors = kernel_errors(hardware, fit.tables, fit.gpu);
  fmt::print("\nBy kernel and type\n");
  print(error_means(errors, ErrorGroup::kKernelAndType));
  fmt::print("By engine\n");
  print(error_means(errors, ErrorGroup::kEngine));
  fmt::print("By decade of size (m; KV bytes; prompt tokens; message bytes)\n");
  print(error_means(errors, ErrorGroup::kDecade));
}

void fit_tables(const TableFit& fit) {
  const nlohmann::json datasheet = read_json_file(fit.datasheet);
  HardwareSpec hardware = hardware_without_kernels(datasheet, stem(fit.out), fit.datasheet);
  FitOptions options;
  options.tables = !fit.no_tables;
  options.table_by_n = fit.table_by_n;
  const auto qualities =
      fit_kernels(hardware, fit.tables, fit.gpu, options, [](const FitQuality& q) {
        fmt::print("{:<38} {:>5} rows  MAPE {:>5.1f} %  held out {:>5.1f} %\n", q.kernel, q.rows,
                   100 * q.all, 100 * q.held_out);
        std::fflush(stdout);
      });
  Json profile = blocks_beside_kernels(fit.datasheet);
  profile.update(kernel_blocks(hardware.kernels, [&](const std::string& block) {
    return provenance(block, "vllm", qualities, fit.data_source);
  }));
  if (hardware.tensorrt_llm) {
    Json other = kernel_blocks(*hardware.tensorrt_llm, [&](const std::string& block) {
      return provenance(block, "tensorrt_llm", qualities, fit.data_source);
    });
    other["source"] = "calibrate fit on " + fit.data_source + ", TensorRT-LLM rows";
    other["kind"] = "fitted";
    profile["tensorrt_llm"] = other;
  }
  print_errors(hardware_from_json(nlohmann::json(profile), hardware.name, fit.out), fit);
  write_file(fit.out, profile.dump(2) + "\n");
}

}  // namespace

bool has_fit() {
  return true;
}

void run_fit(const Flags& flags) {
  if (flags.has("--timings")) {
    for (const char* table :
         {"--gemm", "--attention-decode", "--attention-prefill", "--collectives"}) {
      if (flags.has(table)) {
        throw InputError(
            fmt::format("{} and --timings exclude each other: the folder has its tables", table));
      }
    }
    fit_measurement(flags.text("--timings"), flags.text("--datasheet"), flags.text("--out"));
    return;
  }
  for (const char* needed :
       {"--gemm", "--attention-decode", "--attention-prefill", "--collectives", "--datasheet"}) {
    if (!flags.has(needed)) {
      throw InputError(
          fmt::format("{} is required by fit, unless --timings names a measured folder", needed));
    }
  }
  fit_tables({{flags.text("--gemm"), flags.text("--attention-decode"),
               flags.text("--attention-prefill"), flags.text("--collectives")},
              flags.text("--gpu"),
              flags.text("--datasheet"),
              flags.text("--out"),
              flags.text("--data-source"),
              flags.has("--no-table"),
              flags.has("--table-by-n")});
}

/// The rule for GPUs without kernel measurements: the efficiencies and latencies of a fitted GPU,
/// the time of an attention tile scaled by peak FLOP/s per SM.
void run_derive(const Flags& flags) {
  const std::string datasheet = flags.text("--datasheet"), out = flags.text("--out");
  const HardwareSpec from = load_hardware(flags.text("--from"));
  const HardwareSpec to = hardware_without_kernels(read_json_file(datasheet), stem(out), datasheet);
  const double tile_ratio = (from.bf16_flops / static_cast<double>(from.sms)) /
                            (to.bf16_flops / static_cast<double>(to.sms));
  const Provenance rule{
      fmt::format(
          "no kernel of this GPU was measured: efficiencies and latencies of {}, the time of "
          "an attention tile scaled by peak FLOP/s per SM (x {:.4g})",
          from.name, tile_ratio),
      "assumed"};
  const auto scaled = [&](KernelSet set) {
    set.prefill_attention.tile_us *= tile_ratio;
    if (set.prefill_attention_8bit) set.prefill_attention_8bit->tile_us *= tile_ratio;
    if (!to.fp8_flops && !to.int8_flops) set.gemm_8bit.reset();
    return set;
  };
  Json profile = blocks_beside_kernels(datasheet);
  const Json own = Json::parse(std::ifstream(datasheet), nullptr, false);
  const auto blocks = [&](const KernelSet& set) {
    Json all = kernel_blocks(scaled(set), [&](const std::string&) { return rule; });
    // Links differ between GPUs of one generation: a profile may state its own all-reduce.
    if (own.contains("all_reduce") && !to.nvlink_bytes_per_s) all["all_reduce"] = own["all_reduce"];
    return all;
  };
  profile.update(blocks(from.kernels));
  if (from.tensorrt_llm) {
    Json other = blocks(*from.tensorrt_llm);
    other["source"] = rule.source;
    other["kind"] = rule.kind;
    profile["tensorrt_llm"] = other;
  }
  hardware_from_json(nlohmann::json(profile), to.name, out);
  write_file(out, profile.dump(2) + "\n");
}

}  // namespace servesim::calibrate
