/// Times of single GPU kernels on one rank, from the forms in kernel_forms.hpp.
#pragma once

#include <cstdint>

#include "cost/kernel_forms.hpp"
#include "cost/smooth_max.hpp"
#include "hardware/hardware_spec.hpp"

namespace servesim {

/// What one kernel, or several in a row, cost.
struct KernelCost {
  double seconds = 0;
  double compute_bound_s = 0;  ///< the share of `seconds` in which tensor cores are the limit
  double flops = 0;
  double hbm_bytes = 0;

  KernelCost& operator+=(const KernelCost& other) {
    seconds += other.seconds;
    compute_bound_s += other.compute_bound_s;
    flops += other.flops;
    hbm_bytes += other.hbm_bytes;
    return *this;
  }
  friend KernelCost operator*(KernelCost cost, double times) {
    cost.seconds *= times;
    cost.compute_bound_s *= times;
    cost.flops *= times;
    cost.hbm_bytes *= times;
    return cost;
  }
};

/// Prices GEMMs whose weights are stored in one format.
class GemmKernel {
 public:
  /// `weight_bytes` and `input_bytes` per element; outputs take 2 bytes. `peak_flops` in FLOP/s.
  /// Inputs of one byte are quantised first, which costs a kernel of its own.
  GemmKernel(const GemmParameters& parameters, const HardwareSpec& hardware, double peak_flops,
             double weight_bytes, double input_bytes);

  /// `heat` in [0, 1]. Nothing for an empty shape.
  KernelCost operator()(const GemmShape& shape, double heat) const;

 private:
  GemmParameters parameters_;
  SmoothMax smooth_max_;
  MachineRates machine_;
  double weight_bytes_;
  double input_bytes_;
};

/// Norms and other kernels that stream their data: `kernels` launches, `bytes` of traffic.
KernelCost elementwise(const HardwareSpec& hardware, double kernels, double bytes);

/// Time of an all-reduce of `bytes` per rank.
KernelCost all_reduce(const AllReduceParameters& parameters, double bytes);

/// The machine's rates in the forms' units; `peak_flops` in FLOP/s.
MachineRates machine_rates(const HardwareSpec& hardware, double peak_flops);

}  // namespace servesim
