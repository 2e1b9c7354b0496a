/// Fits the parameters of each kernel to measurements of that kernel alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cost/kernel_errors.hpp"
#include "fit_forms.hpp"
#include "hardware/hardware_spec.hpp"

namespace servesim::calibrate {

/// A row that a first fit did not see, and what that fit says of it.
struct HeldOut {
  std::string shape;
  double predicted_us = 0;
  double measured_us = 0;
};

/// How well a fit does. Held-out rows are chosen by a hash of their sizes, see is_held_out();
/// `held_out` comes from a fit that did not see them, `all` from the fit to all rows that is kept.
struct FitQuality {
  std::string kernel;
  std::size_t rows = 0;
  double all = 0;       ///< mean absolute relative error
  double held_out = 0;  ///< the same on rows left out
  double held_out_median = 0;
  std::vector<HeldOut> rows_held_out;
};

/// How thoroughly is searched, and for what.
struct FitOptions {
  int restarts = 10;
  int steps = 600;
  bool tables = true;       ///< a correction table by m on top of the GEMM forms
  bool table_by_n = false;  ///< and one by n on top of it
  Benchmark benchmark = {};
};

/// Replaces the kernels of `hardware` by fits to the tables' rows for `gpu`. Engines without rows
/// of a kernel get the other engine's parameters (vLLM) or no set (TensorRT-LLM). Throws InputError
/// from the tables, or when a table has too few rows for `gpu`; own timings need no all-reduces.
std::vector<FitQuality> fit_kernels(HardwareSpec& hardware, const KernelTables& tables,
                                    const std::string& gpu, const FitOptions& options,
                                    const std::function<void(const FitQuality&)>& progress);

}  // namespace servesim::calibrate
