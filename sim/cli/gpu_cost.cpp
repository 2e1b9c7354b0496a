#include "cli/gpu_cost.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "core/error.hpp"
#include "core/units.hpp"

namespace servesim {
namespace {

double parse_price(const std::string& text, const std::string& word) {
  const double price = parse_number(text, "--gpu-hour-cost");
  constexpr double kMostDollars = 1e6;
  if (!(price >= 0 && price <= kMostDollars)) {
    throw InputError(fmt::format("--gpu-hour-cost {}: accepted: 0 to {}", word, kMostDollars));
  }
  return price;
}

}  // namespace

GpuHourCost::GpuHourCost(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos && words.size() == 1) {
      any_ = parse_price(word, word);
      return;
    }
    const std::string name = word.substr(0, colon);
    if (colon == std::string::npos || name.empty()) {
      throw InputError(fmt::format(
          "--gpu-hour-cost {}: accepted: one price, or NAME:PRICE for each GPU, in dollars", word));
    }
    if (!by_name_.emplace(name, parse_price(word.substr(colon + 1), word)).second) {
      throw InputError(fmt::format("--gpu-hour-cost names '{}' twice", name));
    }
  }
}

std::optional<double> GpuHourCost::of(const std::string& hardware) const {
  if (any_ || by_name_.empty()) return any_;
  const auto found = by_name_.find(hardware);
  if (found == by_name_.end()) {
    throw InputError(
        fmt::format("--gpu-hour-cost has no price for {}; add {}:PRICE", hardware, hardware));
  }
  return found->second;
}

void GpuHourCost::check_used(const std::vector<const ResolvedRun*>& runs) const {
  for (const auto& [name, price] : by_name_) {
    std::set<std::string> used;
    for (const ResolvedRun* run : runs) {
      used.insert(run->hardware);
      if (run->cluster.disaggregated) used.insert(run->decode_hardware);
    }
    if (used.contains(name) || used.empty()) continue;
    throw InputError(fmt::format("--gpu-hour-cost {}: no run uses it; they use {}", name,
                                 fmt::join(used, ", ")));
  }
}

std::optional<double> GpuHourCost::of(const ResolvedRun& run) const {
  const std::optional<double> price = of(run.hardware);
  if (!price || !run.cluster.disaggregated) return price;
  const auto all = static_cast<double>(run.gpus());
  const double decode_share = static_cast<double>(run.decode_gpus()) / all;
  return std::lerp(*price, of(run.decode_hardware).value(), decode_share);
}

}  // namespace servesim
