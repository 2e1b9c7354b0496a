/// Runs the production engine on the oracle's configurations and traces, so that the two can be
/// compared.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/time.hpp"
#include "cost/step_cost_model.hpp"
#include "engine/engine_stats.hpp"
#include "sched/scheduler_config.hpp"
#include "support/oracle/types.hpp"

namespace servesim::testing {

/// What one request saw, in nanoseconds.
struct Fate {
  bool completed = false;
  std::int64_t scheduled_ns = -1, first_token_ns = -1, last_token_ns = -1;
  std::int64_t outputs = 0, prefix_hit_tokens = 0, preemptions = 0;
  bool operator==(const Fate&) const = default;
};

/// Everything two engines must agree on.
struct Outcome {
  std::vector<Fate> fates;                    ///< by index of the request
  std::map<std::int64_t, std::int64_t> gaps;  ///< gap between tokens in ns -> how many
  std::int64_t recomputed_tokens = 0;
  std::int64_t steps = 0;
  double kv_used = 0, kv_internal = 0, kv_reserved = 0;  ///< token-seconds; production engine only
  double kv_external = 0, elapsed_s = 0;
  EngineStats stats;  ///< production engine only
};

/// How steps are priced: an affine function of what is in them, whole nanoseconds.
struct AffinePrice {
  std::int64_t base_ns = 0, per_token_ns = 0, per_context_ns = 0;
  std::int64_t per_shared_ns = 0;  ///< per token that a running request holds after another one
  std::int64_t stages = 1;         ///< set to those of the configuration
  oracle::Price for_oracle() const;
  std::unique_ptr<StepCostModel> for_engine() const;
};

/// Changes settings that the oracle does not know.
using Adjust = std::function<void(SchedulerConfig&)>;

/// One replica of the production engine, in stretches.
Outcome run_engine(const oracle::Config& config, const std::vector<oracle::Request>& requests,
                   const AffinePrice& price, const Adjust& adjust = {});

/// The same step by step, with its log; `outcome` may be null.
std::vector<oracle::LoggedStep> log_engine(const oracle::Config& config,
                                           const std::vector<oracle::Request>& requests,
                                           const AffinePrice& price, Outcome* outcome = nullptr,
                                           const Adjust& adjust = {});

/// What the oracle says.
Outcome run_oracle(const oracle::Config& config, const std::vector<oracle::Request>& requests,
                   const AffinePrice& price);

/// The first difference in words, or empty.
std::string difference(const Outcome& expected, const Outcome& actual);

}  // namespace servesim::testing
