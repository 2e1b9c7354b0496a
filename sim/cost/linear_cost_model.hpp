/// The simplest step cost: so much per step and so much per token. For tests of schedulers.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cost/pipeline_split.hpp"
#include "cost/step_cost_model.hpp"

namespace servesim {

/// total = base + per_token * tokens, exact in whole nanoseconds; all in Component::kOther; no
/// heat.
class LinearCostModel final : public StepCostModel {
 public:
  /// Microseconds, resolved to whole nanoseconds. Throws InputError when either is negative or
  /// above 1e12, or both are zero (a step must take time).
  /// With a pipeline, each of `stages` takes an equal part.
  LinearCostModel(double base_us, double per_token_us, std::int64_t stages = 1);

  StepCost price(const StepShape& shape, Heat heat) override;
  DecodeStep decode_step(std::int64_t seqs, std::int64_t context, const SharedContext& shared,
                         Heat& heat) override;
  bool decode_step_is_constant() const override { return true; }
  std::span<const SimTime> stages(const StepCost& cost) override { return split_(cost); }
  Heat next_heat(Heat heat, double compute_bound_s, SimTime elapsed) const override;

 private:
  StepCost cost_of(std::int64_t tokens) const;

  SimTime base_;
  SimTime per_token_;
  PipelineSplit split_;
  std::vector<std::unique_ptr<StepCost>> decode_;  ///< by seqs, filled when first asked for
};

/// Parses `linear:base_us=B,per_token_us=P` (either order). Throws InputError.
LinearCostModel parse_linear_cost_model(std::string_view text);

}  // namespace servesim
