/// Does a profile describe this machine, and is the machine as it should be?
#pragma once

#include <string>
#include <vector>

#include "environment.hpp"
#include "hardware/hardware_spec.hpp"
#include "measured_profile.hpp"

namespace servesim::calibrate {

/// Something that is off.
struct Finding {
  std::string what;
  bool other_machine = false;  ///< the profile is of another GPU or CPU
};

/// What the environment alone shows: another device, and state_findings().
std::vector<Finding> machine_findings(const HardwareSpec& profile, const Environment& e);

/// Fresh timings beside the profile's predictions, by kernel.
struct Comparison {
  std::string kernel;
  std::size_t rows = 0;
  double ratio = 1;  ///< median of measured over predicted
};
/// Of all kernels that the profile says something of.
std::vector<Comparison> compare(const HardwareSpec& profile, const std::vector<TimedCase>& timings);

/// What the timings show: kernels that are off the profile by more than `tolerance`, bandwidth and
/// GEMM rates far below (or above) the datasheet's.
std::vector<Finding> timing_findings(const HardwareSpec& profile, const Environment& e,
                                     const std::vector<TimedCase>& timings, double tolerance);

}  // namespace servesim::calibrate
