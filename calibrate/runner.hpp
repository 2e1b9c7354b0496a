/// Runs a plan on a backend and keeps what was measured, whatever happens.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend.hpp"
#include "statistics.hpp"

namespace servesim::calibrate {

/// A measured kernel.
struct Timing {
  Case c;
  Summary summary;
  double check = 0;  ///< error over tolerance; above 1: wrong, and not to be used
};

/// One moment of the sustained GEMM.
struct SustainedPoint {
  double at_s = 0;
  double us = 0;
  PowerSample power;
};

/// All that a run leaves.
struct Measurement {
  std::vector<Timing> timings;  ///< in the plan's order
  std::vector<LeftOut> left_out;
  std::vector<SustainedPoint> sustained;
  std::vector<std::string> throttling;  ///< reasons seen during the run
  bool interrupted = false;
  double seconds = 0;
};

/// What bounds a run, and whom it talks to.
struct RunLimits {
  Effort effort;
  double budget_s = 600;
  std::function<bool()> interrupted;            ///< asked between samples
  std::function<void(const std::string&)> say;  ///< progress, one line each
};

/// Measures the plan's cases. Those that no time is left for, that throw or that give wrong results
/// are left out, with the reason. An interrupt ends the run after the sample at hand.
Measurement run(Backend& backend, const Plan& plan, const RunLimits& limits);

/// How many calls make a sample of at least `sample_us`, given one call's time.
int calls_for(double us, double sample_us);

}  // namespace servesim::calibrate
