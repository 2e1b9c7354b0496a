#include "cost/kernels.hpp"

#include "model/number_format.hpp"

namespace servesim {

MachineRates machine_rates(const HardwareSpec& hardware, double peak_flops) {
  return {hardware.hbm_bytes_per_s * 1e-6, static_cast<double>(hardware.sms), peak_flops * 1e-6};
}

GemmKernel::GemmKernel(const GemmParameters& parameters, const HardwareSpec& hardware,
                       double peak_flops, double weight_bytes, double input_bytes)
    : parameters_(parameters),
      smooth_max_(parameters.smoothness),
      machine_(machine_rates(hardware, peak_flops)),
      weight_bytes_(weight_bytes),
      input_bytes_(input_bytes) {}

KernelCost GemmKernel::operator()(const GemmShape& shape, double heat) const {
  KernelCost cost;
  if (!(shape.m > 0 && shape.n > 0 && shape.groups > 0)) return cost;
  cost.flops = 2 * shape.groups * shape.m * shape.n * shape.k;
  cost.hbm_bytes = shape.groups * (shape.n * shape.k * weight_bytes_ +
                                   shape.m * shape.k * input_bytes_ + shape.m * shape.n * kBytes16);
  const double memory_us =
      cost.hbm_bytes / (parameters_.bandwidth_efficiency * machine_.hbm_bytes_per_us);
  const GemmLimits limits = gemm_limits(parameters_, machine_, shape, memory_us, heat, smooth_max_);
  const double correction = gemm_correction(parameters_, shape.m, shape.n);
  double us = limits.total_us() * correction;
  if (input_bytes_ < kBytes16) us += quantize_us(parameters_, shape.m * shape.groups, shape.k);
  cost.seconds = us * 1e-6;
  cost.compute_bound_s =
      limits.limit_us * correction * 1e-6 * smooth_max_.share(limits.compute_us, memory_us);
  return cost;
}

KernelCost elementwise(const HardwareSpec& hardware, double kernels, double bytes) {
  const ElementwiseParameters& p = hardware.elementwise;
  KernelCost cost;
  cost.hbm_bytes = bytes;
  cost.seconds =
      kernels * p.kernel_us * 1e-6 + bytes / (p.bandwidth_efficiency * hardware.hbm_bytes_per_s);
  return cost;
}

KernelCost all_reduce(const AllReduceParameters& parameters, double bytes) {
  KernelCost cost;
  cost.seconds = all_reduce_us(parameters, bytes) * 1e-6;
  return cost;
}

}  // namespace servesim
