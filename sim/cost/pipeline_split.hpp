/// How the time of a step divides among the stages of a pipeline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/step_cost_model.hpp"

namespace servesim {

/// Layers of each of `stages` stages, as vLLM's get_pp_indices() has them: as many for all, what is
/// left over one each for the stages before the last. Throws InputError unless 1 <= stages <=
/// layers.
std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages);

/// Takes all layers as alike. The LM head, sampling and drafting are the last stage's; sending is
/// all the others', in equal parts.
class PipelineSplit {
 public:
  /// See stage_layers().
  PipelineSplit(std::int64_t layers, std::int64_t stages);

  std::int64_t stages() const { return std::ssize(shares_); }

  /// The times of the stages, which add up to cost.total. Good until the next call.
  std::span<const SimTime> operator()(const StepCost& cost);

 private:
  std::vector<double> shares_;  ///< of the layers
  std::vector<SimTime> times_;
};

}  // namespace servesim
