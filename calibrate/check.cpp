#include "check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "cost/measured_kernels.hpp"

namespace servesim::calibrate {
namespace {

double d(std::int64_t value) {
  return static_cast<double>(value);
}

/// What the profile says of a timed case, in microseconds; 0 for what it says nothing of.
double predicted_us(const HardwareSpec& profile, const Case& c) {
  constexpr auto kEngine = MeasuredEngine::kVllm;
  switch (c.kernel) {
    case Kernel::kGemm:
      return predict_us(
          profile, MeasuredGemm{kEngine, c.dtype != DType::kBf16, {d(c.m), d(c.n), d(c.k)}, 0});
    case Kernel::kDecodeAttention:
      return predict_us(profile, MeasuredDecode{kEngine, false, d(c.batch), d(c.context),
                                                d(c.heads), d(c.kv_heads), d(c.head_dim), 0});
    case Kernel::kPrefillAttention:
      return predict_us(profile, MeasuredPrefill{kEngine, false, d(c.batch), d(c.context), 0,
                                                 d(c.heads), d(c.kv_heads), d(c.head_dim), 0});
    case Kernel::kRmsNorm:
    case Kernel::kRope:
    case Kernel::kSiluMul:
      return profile.elementwise.kernel_us +
             traffic(c) / (profile.elementwise.bandwidth_efficiency * profile.hbm_bytes_per_s) *
                 1e6;
    default:
      return 0;
  }
}

}  // namespace

std::vector<Finding> machine_findings(const HardwareSpec& profile, const Environment& e) {
  std::vector<Finding> found;
  if (profile.sms != e.units) {
    found.push_back(
        {fmt::format("another machine: the profile has {} SMs (threads of a CPU), {} has {}",
                     profile.sms, e.device, e.units),
         true});
  }
  constexpr double kMemoryTolerance = 0.03;  // drivers and firmware take a per cent or two
  if (std::abs(e.memory_bytes / profile.memory_bytes - 1) > kMemoryTolerance) {
    found.push_back(
        {fmt::format("another machine: the profile has {:.1f} GiB, {} has {:.1f} GiB",
                     profile.memory_bytes / (1 << 30), e.device, e.memory_bytes / (1 << 30)),
         true});
  }
  if (e.cuda()) {
    const std::string own = profile_for_device(e.device), meant = gpu_of_profile(profile.name);
    if (!own.empty() && !meant.empty() && own != meant) {
      found.push_back({fmt::format("wrong SKU: profile '{}' on a GPU that is '{}' ({})",
                                   profile.name, own, e.device),
                       true});
    }
  }
  for (const std::string& what : state_findings(e)) found.push_back({what});
  return found;
}

std::vector<Comparison> compare(const HardwareSpec& profile,
                                const std::vector<TimedCase>& timings) {
  std::map<std::string, std::vector<double>> ratios;
  for (const TimedCase& t : timings) {
    const double expected = predicted_us(profile, t.c);
    if (!(expected > 0)) continue;
    std::string name = family_of(t.c.kernel);
    if (t.c.kernel == Kernel::kGemm) name += std::string(" ") + name_of(t.c.dtype);
    ratios[name].push_back(t.us / expected);
  }
  std::vector<Comparison> all;
  for (const auto& [name, values] : ratios) all.push_back({name, values.size(), median(values)});
  return all;
}

std::vector<Finding> timing_findings(const HardwareSpec& profile, const Environment& e,
                                     const std::vector<TimedCase>& timings, double tolerance) {
  std::vector<Finding> found;
  for (const Comparison& c : compare(profile, timings)) {
    if (c.ratio < 1 + tolerance && c.ratio > 1 / (1 + tolerance)) continue;
    found.push_back({fmt::format("{}: measured {:.2f} times what the profile says (median of {})",
                                 c.kernel, c.ratio, c.rows)});
  }
  const double read = best_bytes_per_s(timings, Kernel::kRead);
  // Streaming reads reach nine tenths of a GPU's datasheet; a CPU's rate was measured like this
  // one.
  const double least = e.cuda() ? 0.8 : 1 / (1 + tolerance);
  if (read > 0 && read < least * profile.hbm_bytes_per_s) {
    found.push_back(
        {fmt::format("memory: {:.0f} GB/s read, {:.0f} % of the profile's {:.0f} GB/s", read * 1e-9,
                     100 * read / profile.hbm_bytes_per_s, profile.hbm_bytes_per_s * 1e-9)});
  }
  constexpr double kAbove = 1.05;
  if (e.cuda() && read > kAbove * profile.hbm_bytes_per_s) {
    found.push_back(
        {fmt::format("wrong SKU: {:.0f} GB/s read is more than the datasheet's {:.0f} GB/s",
                     read * 1e-9, profile.hbm_bytes_per_s * 1e-9),
         true});
  }
  std::vector<TimedCase> bf16;
  std::copy_if(timings.begin(), timings.end(), std::back_inserter(bf16),
               [](const TimedCase& t) { return t.c.dtype == DType::kBf16; });
  const double gemm = best_flops_per_s(bf16, Kernel::kGemm);
  constexpr double kLeastGemm = 0.5;
  if (e.cuda() && gemm > 0 && gemm < kLeastGemm * profile.bf16_flops) {
    found.push_back(
        {fmt::format("compute: the best GEMM reached {:.0f} TFLOP/s, {:.0f} % of the "
                     "datasheet's {:.0f}",
                     gemm * 1e-12, 100 * gemm / profile.bf16_flops, profile.bf16_flops * 1e-12)});
  }
  return found;
}

}  // namespace servesim::calibrate
