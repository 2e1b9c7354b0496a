// calibrate: hardware profiles from kernel timings.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/params.hpp"
#include "fit_kernels.hpp"
#include "hardware/hardware_loader.hpp"
#include "profile_json.hpp"

namespace servesim::calibrate {
namespace {

using Json = nlohmann::ordered_json;

struct FitArguments {
  KernelTables tables;
  std::string gpu;
  std::string datasheet;
  std::string out;
  std::string data_source;
  bool no_tables = false;
  bool table_by_n = false;
};

struct DeriveArguments {
  std::string from;
  std::string datasheet;
  std::string out;
};

std::string stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

void write(const std::string& path, const Json& json) {
  const std::string temporary = path + ".part";
  std::ofstream(temporary) << json.dump(2) << "\n";
  std::error_code failed;
  std::filesystem::rename(temporary, path, failed);
  if (failed) throw InputError(fmt::format("{}: cannot be written: {}", path, failed.message()));
}

/// The blocks of a profile that are not kernels', in their order.
Json kept_blocks(const std::string& path) {
  std::ifstream in(path);
  Json all = Json::parse(in, nullptr, false);
  for (const std::string& key : kernel_block_names()) all.erase(key);
  return all;
}

void print(const std::vector<ErrorMean>& means) {
  for (const ErrorMean& mean : means) {
    fmt::print("  {:<36} {:>5} rows  MAPE {:>5.1f} %  bias {:>+5.1f} %\n", mean.name, mean.rows,
               100 * mean.mape, 100 * mean.bias);
  }
}

void print_errors(const HardwareSpec& hardware, const FitArguments& arguments) {
  const auto errors = kernel_errors(hardware, arguments.tables, arguments.gpu);
  fmt::print("\nBy kernel and type\n");
  print(error_means(errors, ErrorGroup::kKernelAndType));
  fmt::print("By engine\n");
  print(error_means(errors, ErrorGroup::kEngine));
  fmt::print("By decade of size (m; KV bytes; prompt tokens; message bytes)\n");
  print(error_means(errors, ErrorGroup::kDecade));
}

/// Which fits stand behind a block of a profile.
std::string prefix_of(const std::string& block) {
  if (block == "gemm") return "gemm bf16";
  if (block == "gemm_8bit") return "gemm fp8";
  if (block == "decode_attention") return "attention_decode bf16";
  if (block == "decode_attention_8bit") return "attention_decode fp8";
  if (block == "prefill_attention") return "attention_prefill bf16";
  if (block == "prefill_attention_8bit") return "attention_prefill fp8";
  return "all_reduce";
}

Provenance provenance(const std::string& block, const std::string& engine,
                      const std::vector<FitQuality>& qualities, const FitArguments& arguments) {
  std::string fits;
  for (const FitQuality& q : qualities) {
    if (!q.kernel.starts_with(prefix_of(block))) continue;
    const bool other =
        q.kernel.find(engine == "vllm" ? "tensorrt_llm" : "vllm") != std::string::npos;
    if (other) continue;
    fits += fmt::format(
        "{}{}: {} rows, mean absolute error {:.1f} %, {:.1f} % on a quarter of the "
        "shapes left out of a first fit",
        fits.empty() ? "" : "; ", q.kernel, q.rows, 100 * q.all, 100 * q.held_out);
  }
  return {fmt::format("calibrate fit on {} ({})", arguments.data_source, fits), "fitted"};
}

void run_fit(const FitArguments& arguments) {
  const nlohmann::json datasheet = read_json_file(arguments.datasheet);
  HardwareSpec hardware =
      hardware_without_kernels(datasheet, stem(arguments.out), arguments.datasheet);
  FitOptions options;
  options.tables = !arguments.no_tables;
  options.table_by_n = arguments.table_by_n;
  const auto qualities =
      fit_kernels(hardware, arguments.tables, arguments.gpu, options, [](const FitQuality& q) {
        fmt::print("{:<38} {:>5} rows  MAPE {:>5.1f} %  held out {:>5.1f} %\n", q.kernel, q.rows,
                   100 * q.all, 100 * q.held_out);
        std::fflush(stdout);
      });
  Json profile = kept_blocks(arguments.datasheet);
  profile.update(kernel_blocks(hardware.kernels, [&](const std::string& block) {
    return provenance(block, "vllm", qualities, arguments);
  }));
  if (hardware.tensorrt_llm) {
    Json other = kernel_blocks(*hardware.tensorrt_llm, [&](const std::string& block) {
      return provenance(block, "tensorrt_llm", qualities, arguments);
    });
    other["source"] = "calibrate fit on " + arguments.data_source + ", TensorRT-LLM rows";
    other["kind"] = "fitted";
    profile["tensorrt_llm"] = other;
  }
  const HardwareSpec written =
      hardware_from_json(nlohmann::json(profile), hardware.name, arguments.out);
  print_errors(written, arguments);
  write(arguments.out, profile);
}

/// The rule for GPUs without kernel measurements: the efficiencies and latencies of a fitted GPU,
/// the time of an attention tile scaled by peak FLOP/s per SM.
void run_derive(const DeriveArguments& arguments) {
  const HardwareSpec from = load_hardware(arguments.from);
  const HardwareSpec to = hardware_without_kernels(read_json_file(arguments.datasheet),
                                                   stem(arguments.out), arguments.datasheet);
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
  Json profile = kept_blocks(arguments.datasheet);
  const Json own = Json::parse(std::ifstream(arguments.datasheet), nullptr, false);
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
  hardware_from_json(nlohmann::json(profile), to.name, arguments.out);
  write(arguments.out, profile);
}

int run(int argc, char** argv) {
  CLI::App app("Hardware profiles for servesim from kernel timings.", "calibrate");
  app.require_subcommand(1);
  FitArguments fit;
  CLI::App* fit_verb = app.add_subcommand("fit", "Fit a GPU's kernels to tables of timings");
  fit_verb->add_option("--gemm", fit.tables.gemm, "CSV: gpu,engine,dtype,m,n,k,latency_us")
      ->required();
  fit_verb
      ->add_option("--attention-decode", fit.tables.attention_decode,
                   "CSV: gpu,engine,kv_dtype,batch,ctx,heads,kv_heads,head_dim,latency_us")
      ->required();
  fit_verb
      ->add_option(
          "--attention-prefill", fit.tables.attention_prefill,
          "CSV: gpu,engine,kv_dtype,batch,isl,past_tokens,heads,kv_heads,head_dim,latency_us")
      ->required();
  fit_verb
      ->add_option("--collectives", fit.tables.collectives,
                   "CSV: gpu,impl,op,dtype,n_gpus,bytes,latency_us")
      ->required();
  fit_verb->add_option("--gpu", fit.gpu,
                       "Take rows whose gpu begins with this, case ignored [all]");
  fit_verb
      ->add_option("--datasheet", fit.datasheet,
                   "Profile whose datasheet and host blocks are kept; kernel blocks are not read")
      ->required();
  fit_verb->add_option("--out", fit.out, "Profile to write")->required();
  fit_verb->add_option("--data-source", fit.data_source, "How the profile names the timings")
      ->default_val("the given timings");
  fit_verb->add_flag("--no-table", fit.no_tables,
                     "No correction table by m on top of the GEMM forms");
  fit_verb->add_flag("--table-by-n", fit.table_by_n,
                     "A second table by n: closer to the rows given, not to others");
  DeriveArguments derive;
  CLI::App* derive_verb = app.add_subcommand("derive", "A profile for a GPU without measurements");
  derive_verb->add_option("--from", derive.from, "A fitted profile, by name or path")->required();
  derive_verb->add_option("--datasheet", derive.datasheet, "As for fit")->required();
  derive_verb->add_option("--out", derive.out, "Profile to write")->required();
  try {
    app.parse(argc, argv);
    if (*fit_verb) run_fit(fit);
    if (*derive_verb) run_derive(derive);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return 0;
}

}  // namespace
}  // namespace servesim::calibrate

int main(int argc, char** argv) {
  try {
    return servesim::calibrate::run(argc, argv);
  } catch (const servesim::InputError& error) {
    fmt::print(stderr, "calibrate: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "calibrate: internal error: {}\n", error.what());
    return 1;
  }
}
