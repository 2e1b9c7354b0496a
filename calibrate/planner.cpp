#include "planner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "text.hpp"

namespace servesim::calibrate {
namespace {

/// Shares of the budget. GEMMs have the most parameters and make up most of a step.
constexpr std::array<std::pair<const char*, double>, 11> kShares{{{"bandwidth", 0.06},
                                                                  {"launch", 0.01},
                                                                  {"gemv", 0.15},
                                                                  {"gemm", 0.35},
                                                                  {"sustained_gemm", 0.05},
                                                                  {"decode_attention", 0.12},
                                                                  {"prefill_attention", 0.10},
                                                                  {"elementwise", 0.05},
                                                                  {"sampling", 0.05},
                                                                  {"copies", 0.03},
                                                                  {"all_reduce", 0.03}}};

/// A profile's first need: a fit takes ten GEMMs and attention kernels at least.
constexpr std::array<std::pair<const char*, std::size_t>, 7> kFewest{{{"bandwidth", 8},
                                                                      {"gemv", 8},
                                                                      {"gemm", 20},
                                                                      {"decode_attention", 12},
                                                                      {"prefill_attention", 12},
                                                                      {"elementwise", 6},
                                                                      {"sampling", 8}}};

/// Bytes that must be in memory at once.
double operand_bytes(const Case& c) {
  if (c.kernel == Kernel::kDecodeAttention) {
    Case whole = c;
    whole.context = kv_blocks_per_sequence(c) * c.block_size;
    return traffic(whole);
  }
  return traffic(c);
}

}  // namespace

Effort effort_for(bool gpu, double budget_s) {
  Effort effort;
  if (!gpu) {
    // Others disturb cores for seconds at a time: several passes.
    effort.passes = 3;
    effort.samples = 5;
    effort.sample_us = 1000;
    effort.fastest = true;
    effort.setup_s = 0.004;
  }
  effort.sustained_s = std::clamp(0.03 * budget_s, 0.5, 5.0);
  return effort;
}

double estimated_s(const Case& c, const SuiteLimits& limits, const Effort& effort) {
  // Twice the roofline, since most kernels are small; 8-bit GEMMs have their own, higher, peak.
  const double us =
      10 + 2e6 * std::max(flops(c) / limits.flops_per_s, traffic(c) / limits.bytes_per_s);
  if (c.kernel == Kernel::kSustainedGemm) return effort.sustained_s + effort.setup_s;
  const double calls_us = std::max(us, effort.sample_us);
  return effort.passes * (effort.setup_s + (effort.samples + 3) * calls_us * 1e-6) / limits.share;
}

std::size_t fewest_of(const std::string& family) {
  for (const auto& [name, count] : kFewest) {
    if (family == name) return count;
  }
  return 1;
}

Plan plan(const std::vector<Case>& suite, const SuiteLimits& limits, const Effort& effort,
          double budget_s) {
  Plan result;
  std::vector<bool> taken(suite.size(), false);
  std::vector<bool> fits(suite.size(), true);
  std::map<std::string, double> used;
  std::map<std::string, std::size_t> counts;
  const auto take = [&](std::size_t i, double s) {
    taken[i] = true;
    result.estimated_s += s;
    used[family_of(suite[i].kernel)] += s;
    ++counts[family_of(suite[i].kernel)];
  };
  for (std::size_t i = 0; i < suite.size(); ++i) {
    fits[i] = operand_bytes(suite[i]) <= limits.arena_bytes;
  }
  for (std::size_t i = 0; i < suite.size(); ++i) {
    const std::string family = family_of(suite[i].kernel);
    const auto share = std::find_if(kShares.begin(), kShares.end(),
                                    [&](const auto& s) { return family == s.first; });
    const double s = estimated_s(suite[i], limits, effort);
    if (!fits[i]) continue;
    const bool needed = counts[family] < fewest_of(family);
    if (needed || used[family] + s <= share->second * budget_s) take(i, s);
  }
  for (std::size_t i = 0; i < suite.size(); ++i) {
    if (taken[i] || !fits[i]) continue;
    const double s = estimated_s(suite[i], limits, effort);
    if (result.estimated_s + s <= budget_s) take(i, s);
  }
  for (std::size_t i = 0; i < suite.size(); ++i) {
    if (taken[i]) {
      result.cases.push_back(suite[i]);
    } else {
      result.left_out.push_back({suite[i], fits[i] ? kNoTime : "memory"});
    }
  }
  return result;
}

std::string plan_table(const Plan& plan) {
  std::string text;
  for (const auto& [family, share] : kShares) {
    std::size_t in = 0, late = 0, large = 0, other = 0;
    for (const Case& c : plan.cases) in += std::string(family_of(c.kernel)) == family ? 1 : 0;
    for (const LeftOut& out : plan.left_out) {
      if (std::string(family_of(out.c.kernel)) != family) continue;
      (out.reason == "memory" ? large : out.reason == "time budget" ? late : other) += 1;
    }
    if (in + late + large + other == 0) continue;
    text += print_to_string("  %-18s %4zu measured", family, in);
    if (late > 0) text += print_to_string(", %zu left out for time", late);
    if (large > 0) text += print_to_string(", %zu left out for memory", large);
    if (other > 0) text += print_to_string(", %zu failed or were not reached", other);
    text += "\n";
  }
  return text;
}

}  // namespace servesim::calibrate
