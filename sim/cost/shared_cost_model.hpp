/// Cost models that outlive a run, so that a search does not fill the same memory again and again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cost/step_cost_model.hpp"

namespace servesim {

using MakeCostModel = std::function<std::unique_ptr<StepCostModel>()>;

/// What makes models like `make`, all those of one thread being handles on one instance, which the
/// thread keeps for later calls with the same `key` (the last few of them). Prices are pure, so
/// results do not change. REQUIRES: makers with equal keys make equal models.
MakeCostModel share_cost_model(MakeCostModel make, std::string key);

}  // namespace servesim
