/// Which kernels are measured, and how many of them a time budget has room for.
#pragma once

#include <string>
#include <vector>

#include "kernel_case.hpp"

namespace servesim::calibrate {

/// What a machine is good for, as far as the list of kernels depends on it.
struct SuiteLimits {
  bool gpu = false;
  bool fp8 = false;
  bool int8 = false;
  int devices = 1;
  bool nccl = false;
  double arena_bytes = 0;  ///< room for the operands of one kernel, of one type
  double flops_per_s = 0;  ///< guesses, to plan with
  double bytes_per_s = 0;
  double share = 1;  ///< of the time that others leave of this machine's cores, in (0, 1]
};

/// All kernels for a machine, family by family, each family from coarse to fine: any number of its
/// first cases covers its range.
std::vector<Case> suite(const SuiteLimits& limits);

/// How each kernel is timed.
struct Effort {
  int passes = 1;          ///< over the whole list, so that drift meets every kernel alike
  int samples = 15;        ///< a pass and kernel
  double sample_us = 300;  ///< a sample repeats its kernel for at least this long
  double sustained_s = 3;  ///< of kSustainedGemm
  /// The fastest sample counts, not the median: on cores that others want too, time is only added.
  bool fastest = false;
  double setup_s = 0.05;  ///< preparing, checking and warming up one kernel, a pass
};
Effort effort_for(bool gpu, double budget_s);

/// Seconds that measuring `c` should take, all passes together.
double estimated_s(const Case& c, const SuiteLimits& limits, const Effort& effort);

/// Why a case is not measured that would have been, had there been time.
inline constexpr const char* kNoTime = "time budget";

/// A case that is not measured, and why.
struct LeftOut {
  Case c;
  std::string reason;
};

struct Plan {
  std::vector<Case> cases;
  std::vector<LeftOut> left_out;
  double estimated_s = 0;
};

/// How many of a family's first cases are taken whatever the budget, and measured before all
/// others: what a fit needs.
std::size_t fewest_of(const std::string& family);

/// Fills `budget_s`: each family gets its share, and what a family leaves goes to the others. The
/// fewest_of() each family are always taken. Deterministic.
Plan plan(const std::vector<Case>& suite, const SuiteLimits& limits, const Effort& effort,
          double budget_s);

/// One line a family: how many of its cases are in, how many are left out and why.
std::string plan_table(const Plan& plan);

/// The order 0, n/2, n/4, 3n/4, ... (van der Corput) of n things.
std::vector<std::size_t> coarse_to_fine(std::size_t n);

}  // namespace servesim::calibrate
