#include "cost/explain.hpp"

#include <algorithm>

#include "cost/roofline_cost_model.hpp"

namespace servesim {
namespace {

PartExplanation explain_part(Component component, const KernelCost& cost, double peak_flops,
                             double peak_bytes_per_s) {
  PartExplanation part;
  part.component = component;
  part.seconds = cost.seconds;
  part.flops = cost.flops;
  part.hbm_bytes = cost.hbm_bytes;
  if (cost.hbm_bytes > 0) part.intensity = cost.flops / cost.hbm_bytes;
  if (cost.seconds > 0) {
    part.mfu = cost.flops / cost.seconds / peak_flops;
    part.mbu = cost.hbm_bytes / cost.seconds / peak_bytes_per_s;
  }
  part.limit = component == Component::kAllReduce ? Limit::kLink : limit_of(part.mfu, part.mbu);
  return part;
}

/// Attention, the LM head and routers compute in 16 bits whatever the weights are stored in.
bool computes_in_16_bits(Component component) {
  return component == Component::kAttentionDecode || component == Component::kAttentionPrefill ||
         component == Component::kLmHead;
}

}  // namespace

std::string_view limit_name(Limit limit) {
  switch (limit) {
    case Limit::kCompute:
      return "compute";
    case Limit::kMemory:
      return "memory";
    case Limit::kLatency:
      return "latency";
    case Limit::kLink:
      return "link";
  }
  return "";
}

Limit limit_of(double mfu, double mbu) {
  constexpr double kIdle = 0.1;
  if (std::max(mfu, mbu) < kIdle) return Limit::kLatency;
  return mfu > mbu ? Limit::kCompute : Limit::kMemory;
}

StepExplanation explain(const ModelSpec& model, const HardwareSpec& hardware,
                        const DeploymentSpec& deployment, const StepShape& shape, Heat heat) {
  RooflineCostModel cost_model(model, hardware, deployment);
  StepExplanation result;
  result.cost = cost_model.price(shape, heat);
  result.peak_flops = cost_model.peak_flops();
  result.peak_bytes_per_s = cost_model.peak_bytes_per_s();
  result.ridge = result.peak_flops / result.peak_bytes_per_s;
  const double ranks = static_cast<double>(deployment.tensor_parallel);
  const PartCosts parts = cost_model.parts(shape, heat);
  KernelCost sum;
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    KernelCost cost = parts.parts[i];
    if (cost.seconds <= 0) continue;
    cost.flops *= ranks;
    cost.hbm_bytes *= ranks;
    sum += cost;
    const auto component = static_cast<Component>(i);
    const double peak =
        computes_in_16_bits(component) ? hardware.bf16_flops * ranks : result.peak_flops;
    result.parts.push_back(explain_part(component, cost, peak, result.peak_bytes_per_s));
  }
  std::stable_sort(
      result.parts.begin(), result.parts.end(),
      [](const PartExplanation& a, const PartExplanation& b) { return a.seconds > b.seconds; });
  result.total = explain_part(Component::kOther, sum, result.peak_flops, result.peak_bytes_per_s);
  return result;
}

}  // namespace servesim
