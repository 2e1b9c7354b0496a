/// Fits the parameters of each kernel to measurements of that kernel alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cost/kernel_errors.hpp"
#include "hardware/hardware_spec.hpp"

namespace servesim::calibrate {

/// How well a fit does. Held-out rows are a quarter of the shapes, chosen by a hash of their sizes;
/// `held_out` comes from a fit that did not see them, `all` from the fit to all rows that is kept.
struct FitQuality {
  std::string kernel;
  std::size_t rows = 0;
  double all = 0;       ///< mean absolute relative error
  double held_out = 0;  ///< the same on rows left out
};

struct FitOptions {
  int restarts = 10;
  int steps = 600;
  bool tables = true;       ///< a correction table by m on top of the GEMM forms
  bool table_by_n = false;  ///< and one by n on top of it
};

/// Replaces the kernels of `hardware` by fits to the tables' rows for `gpu`. Engines without rows
/// of a kernel get the other engine's parameters (vLLM) or no set (TensorRT-LLM). Throws InputError
/// from the tables, or when a table has too few rows for `gpu`.
std::vector<FitQuality> fit_kernels(HardwareSpec& hardware, const KernelTables& tables,
                                    const std::string& gpu, const FitOptions& options,
                                    const std::function<void(const FitQuality&)>& progress);

}  // namespace servesim::calibrate
