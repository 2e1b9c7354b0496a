/// Cost models that outlive a run, so that a search does not fill the same memory again and again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cost/step_cost_model.hpp"

namespace servesim {

using MakeCostModel = std::function<std::shared_ptr<StepCostModel>()>;

/// What hands out, instead of a new model each time, one that the thread keeps for later calls with
/// the same `key` (the last few of them). Prices are pure, so results do not change. REQUIRES:
/// makers with equal keys make equal models.
MakeCostModel share_cost_model(MakeCostModel make, std::string key);

}  // namespace servesim
