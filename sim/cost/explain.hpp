/// What one step costs and why.
#pragma once

#include <string_view>
#include <vector>

#include "cost/deployment.hpp"
#include "cost/step_cost_model.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// What a part of a step is limited by: the larger of its least times at peak FLOP/s and at peak
/// HBM rate, unless both are under a tenth of its time.
enum class Limit : std::uint8_t { kCompute, kMemory, kLatency, kLink };

std::string_view limit_name(Limit limit);
/// The limit of what reaches these shares of the peak rates.
Limit limit_of(double mfu, double mbu);

/// One component of a step. Work is that of the whole engine (all ranks).
struct PartExplanation {
  Component component = Component::kOther;
  double seconds = 0;
  double flops = 0;
  double hbm_bytes = 0;
  double intensity = 0;  ///< FLOPs per HBM byte; 0 without traffic
  double mfu = 0;        ///< share of the peak FLOP/s of the type it computes in
  double mbu = 0;        ///< share of the peak HBM rate
  Limit limit = Limit::kLatency;
};

/// A step, its parts that take time, and the machine's ridge point.
struct StepExplanation {
  StepCost cost;
  std::vector<PartExplanation> parts;  ///< the longest first
  PartExplanation total;
  double peak_flops = 0;        ///< of the whole engine, in the type of the linear layers
  double peak_bytes_per_s = 0;  ///< of the whole engine
  double ridge = 0;             ///< FLOPs per byte above which compute is the limit
};

/// Explains the step that RooflineCostModel prices. Throws InputError as RankCosts does.
StepExplanation explain(const ModelSpec& model, const HardwareSpec& hardware,
                        const DeploymentSpec& deployment, const StepShape& shape, Heat heat);

}  // namespace servesim
