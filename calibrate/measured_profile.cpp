#include "measured_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/data_dir.hpp"
#include "core/error.hpp"
#include "core/params.hpp"
#include "hardware/hardware_loader.hpp"

namespace servesim::calibrate {
namespace {

using Json = nlohmann::ordered_json;

Json stated(Json block, const std::string& source, const char* kind) {
  block["source"] = source;
  block["kind"] = kind;
  return block;
}

Json cpu_blocks(const Environment& e, const std::vector<TimedCase>& timings,
                const std::string& from) {
  const double bandwidth = best_bytes_per_s(timings, Kernel::kRead);
  const double gemm = best_flops_per_s(timings, Kernel::kGemm);
  const double peak = std::max(best_flops_per_s(timings, Kernel::kPeakFma), gemm);
  const double copy = best_bytes_per_s(timings, Kernel::kCopy);
  if (!(bandwidth > 0) || !(peak > 0) || !(copy > 0)) {
    throw InputError(
        "too few timings for a profile: bandwidth and GEMM are needed; give more "
        "--time-budget");
  }
  Json p;
  p["memory"] = stated({{"bytes", e.memory_bytes}}, "MemTotal of /proc/meminfo", "measured");
  p["hbm"] = stated({{"bytes_per_s", rounded(bandwidth)}},
                    from + ": best of the read kernel, all threads", "measured");
  p["compute"] = stated({{"sms", e.units}, {"bf16_flops_per_s", rounded(peak)}},
                        from +
                            ": threads, and fp32 multiply-adds in registers (bf16 operands are "
                            "converted; the best GEMM where that was faster)",
                        "measured");
  p["pcie"] =
      stated({{"bytes_per_s_per_direction", rounded(copy / 2)}},
             from + ": half of the copy kernel's traffic; a CPU has no link to its own memory",
             "measured");
  return p;
}

}  // namespace

double best_bytes_per_s(const std::vector<TimedCase>& timings, Kernel kernel) {
  double best = 0;
  for (const TimedCase& t : timings) {
    if (t.c.kernel == kernel) best = std::max(best, traffic(t.c) / t.us * 1e6);
  }
  return best;
}

double best_flops_per_s(const std::vector<TimedCase>& timings, Kernel kernel) {
  double best = 0;
  for (const TimedCase& t : timings) {
    if (t.c.kernel == kernel) best = std::max(best, flops(t.c) / t.us * 1e6);
  }
  return best;
}

ElementwiseFit fit_elementwise(const std::vector<TimedCase>& timings, double bytes_per_s) {
  std::vector<double> sizes, us;
  for (const TimedCase& t : timings) {
    if (std::string(family_of(t.c.kernel)) != "elementwise") continue;
    sizes.push_back(traffic(t.c));
    us.push_back(t.us);
  }
  constexpr std::size_t kFewest = 4;
  if (us.size() < kFewest) {
    throw InputError("too few elementwise timings for a profile; give more --time-budget");
  }
  const Line line = fit_line(sizes, us);
  std::vector<double> errors;
  for (std::size_t i = 0; i < us.size(); ++i)
    errors.push_back(std::abs(line.at(sizes[i]) / us[i] - 1));
  constexpr double kLeast = 0.01;  // what a profile may hold
  return {line.t0_us, std::clamp(line.rate * 1e6 / bytes_per_s, kLeast, 1.0), median(errors),
          us.size()};
}

double sampling_ns_per_logit(const std::vector<TimedCase>& timings) {
  double ns = 0;
  for (const Kernel kernel : {Kernel::kSoftmax, Kernel::kTopKTopP}) {
    std::vector<double> logits, us;
    for (const TimedCase& t : timings) {
      if (t.c.kernel != kernel) continue;
      logits.push_back(static_cast<double>(t.c.m * t.c.n));
      us.push_back(t.us);
    }
    if (us.size() < 3)
      throw InputError("too few sampling timings for a profile; give more --time-budget");
    ns += 1e3 / fit_line(logits, us).rate;
  }
  return ns;
}

double GemvForm::at(const Case& c) const {
  return t0_us + us_per_byte * traffic(c) + row_us * static_cast<double>(c.n);
}

std::string datasheet_of(const Environment& e, const std::string& given) {
  if (!e.cuda()) return {};
  const std::string name = given.empty() ? profile_for_device(e.device) : given;
  if (name.empty()) {
    throw InputError(fmt::format(
        "no datasheet is known for '{}': name one with --datasheet PROFILE (a file with the blocks "
        "memory, hbm, compute, pcie, elementwise, sampling, heat, host, memory_overhead)",
        e.device));
  }
  const std::vector<std::string> shipped = hardware_names();
  const bool known = std::find(shipped.begin(), shipped.end(), name) != shipped.end();
  const auto folder = std::filesystem::path(data_dir()) / "models" / "hardware";
  const std::string path = known || given.empty() ? (folder / (name + ".json")).string() : name;
  hardware_without_kernels(read_json_file(path), name, path);  // that it is one
  return path;
}

namespace {

GemvForm gemv_form(const std::vector<const TimedCase*>& timings) {
  std::vector<double> bytes, rows, us;
  for (const TimedCase* t : timings) {
    bytes.push_back(traffic(t->c));
    rows.push_back(static_cast<double>(t->c.n));
    us.push_back(t->us);
  }
  const std::vector<double> ones(us.size(), 1.0);
  const std::vector<double> c = fit_nonnegative({ones, bytes, rows}, us);
  return {c[0], c[1], c[2]};
}

}  // namespace

std::vector<GemvFit> fit_gemvs(const std::vector<TimedCase>& timings) {
  std::vector<GemvFit> fits;
  for (const DType type : {DType::kBf16, DType::kFp16, DType::kInt8, DType::kInt4}) {
    std::vector<const TimedCase*> all, train, held;
    for (const TimedCase& t : timings) {
      if (t.c.kernel != Kernel::kGemv || t.c.dtype != type) continue;
      all.push_back(&t);
      const GemmShape shape{1, static_cast<double>(t.c.n), static_cast<double>(t.c.k)};
      const bool out = is_held_out(MeasuredGemm{MeasuredEngine::kVllm, false, shape, t.us});
      (out ? held : train).push_back(&t);
    }
    constexpr std::size_t kFewest = 4;  // one more than the form has parameters
    if (train.size() < kFewest) continue;
    GemvFit fit{name_of(type), gemv_form(all), 0, {}, all.size()};
    const GemvForm trained = gemv_form(train);
    std::vector<double> errors;
    for (const TimedCase* t : held) {
      const double predicted = trained.at(t->c);
      errors.push_back(std::abs(predicted / t->us - 1));
      fit.rows_held_out.push_back({describe(t->c), predicted, t->us});
    }
    if (!errors.empty()) fit.held_out_median = median(errors);
    fits.push_back(std::move(fit));
  }
  return fits;
}

Json blocks_beside_kernels(const std::string& path) {
  std::ifstream in(path);
  Json all = Json::parse(in, nullptr, false);
  if (!all.is_object()) throw InputError(path + ": not a hardware profile");
  for (const std::string& key : kernel_block_names()) all.erase(key);
  return all;
}

namespace {

/// From timings of row-wise kernels.
void add_rows(Json& p, const std::vector<TimedCase>& timings, const std::string& from) {
  const ElementwiseFit fit = fit_elementwise(timings, p["hbm"]["bytes_per_s"].get<double>());
  p["elementwise"] =
      stated({{"kernel_us", rounded(fit.kernel_us)},
              {"bandwidth_efficiency", rounded(fit.bandwidth_efficiency)},
              {"kernels_per_layer", 5.0}},
             fmt::format("{}: RMS norm with residual, rotary embedding, SiLU-mul, {} timings, "
                         "median error {:.0f} %; five kernels a layer (counted)",
                         from, fit.rows, 100 * fit.median_error),
             "fitted");
  p["sampling"] = stated({{"ns_per_logit", rounded(sampling_ns_per_logit(timings))}},
                         from +
                             ": softmax, then top-k 50 and top-p 0.9 and a draw, slope over rows x "
                             "vocabulary; own kernels, not an engine's sampler",
                         "fitted");
}

void add_heat(Json& p, const Sustained& sustained, const std::string& from) {
  if (sustained.slows) {
    p["heat"] = stated(
        {{"time_constant_ms", rounded(1e3 * sustained.time_constant_s)}},
        fmt::format("{}: one GEMM without pause, {:.4g} us at first and {:.4g} us in the end", from,
                    sustained.cold_us, sustained.hot_us),
        "fitted");
  } else if (!p.contains("heat")) {
    p["heat"] = stated(
        {{"time_constant_ms", 40.0}},
        from + ": a GEMM without pause did not slow, so that this number has no effect", "assumed");
  }
}

/// What no kernel shows, where no datasheet has it.
void add_assumed(Json& p, const std::string& folder) {
  if (!p.contains("host")) {
    p["host"] =
        stated({{"step_ms", 3.0}, {"front_end_before_ms", 4.7}, {"front_end_after_ms", 2.0}},
               "of a vLLM 0.23 server on another machine; stand-ins measured here, which are lower "
               "bounds, are in micro.csv of " +
                   folder,
               "assumed");
  }
  if (!p.contains("memory_overhead")) {
    p["memory_overhead"] = stated({{"context_bytes", 250000000}, {"collective_bytes", 0}},
                                  "workspaces beside the tensors, as for a GPU", "assumed");
  }
}

}  // namespace

Json machine_blocks(const Environment& e, const std::vector<TimedCase>& timings,
                    const Sustained& sustained, const std::string& folder,
                    const std::string& datasheet) {
  const std::string from = fmt::format("calibrate measure on {} ({})", e.device, e.toolkit);
  Json p;
  if (e.cuda()) {
    p = blocks_beside_kernels(datasheet_of(e, datasheet));
    p["memory"] =
        stated({{"bytes", e.memory_bytes}}, from + ": as the driver reports it", "measured");
  } else {
    p = cpu_blocks(e, timings, from);
  }
  add_rows(p, timings, from);
  add_heat(p, sustained, from);
  add_assumed(p, folder);
  return p;
}

/// Beginnings of the names of the fits behind a block.
static std::vector<std::string> fits_behind(const std::string& block) {
  if (block == "gemm") return {"gemm bf16"};
  if (block == "gemm_8bit") return {"gemm fp8", "gemm int8"};
  if (block == "decode_attention") return {"attention_decode bf16"};
  if (block == "decode_attention_8bit") return {"attention_decode fp8"};
  if (block == "prefill_attention") return {"attention_prefill bf16"};
  if (block == "prefill_attention_8bit") return {"attention_prefill fp8"};
  return {"all_reduce"};
}

Provenance provenance(const std::string& block, const std::string& engine,
                      const std::vector<FitQuality>& qualities, const std::string& data_source) {
  const std::vector<std::string> prefix = fits_behind(block);
  std::string fits;
  for (const FitQuality& q : qualities) {
    const bool stands_behind = std::any_of(prefix.begin(), prefix.end(),
                                           [&](const auto& p) { return q.kernel.starts_with(p); });
    const bool other =
        q.kernel.find(engine == "vllm" ? "tensorrt_llm" : "vllm") != std::string::npos;
    if (!stands_behind || (other && data_source.find("calibrate measure") == std::string::npos))
      continue;
    fits += fmt::format(
        "{}{}: {} rows, mean absolute error {:.1f} %, {:.1f} % on the {} left out of a first fit",
        fits.empty() ? "" : "; ", q.kernel, q.rows, 100 * q.all, 100 * q.held_out,
        q.rows_held_out.size());
  }
  if (fits.empty())
    return {fmt::format("calibrate fit on {}: nothing of this was measured", data_source),
            "fitted"};
  return {fmt::format("calibrate fit on {} ({})", data_source, fits), "fitted"};
}

}  // namespace servesim::calibrate
