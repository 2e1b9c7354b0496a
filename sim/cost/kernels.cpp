#include "cost/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/number_format.hpp"

namespace servesim {
namespace {

struct Tile {
  double m;
  double n;
};
constexpr std::array kTiles{Tile{64, 64},   Tile{64, 128},  Tile{64, 256},
                            Tile{128, 128}, Tile{128, 256}, Tile{256, 128}};

}  // namespace

GemmKernel::GemmKernel(const GemmParameters& parameters, const HardwareSpec& hardware,
                       double peak_flops, double weight_bytes, double input_bytes)
    : parameters_(parameters),
      smooth_max_(parameters.smoothness),
      hbm_bytes_per_s_(hardware.hbm_bytes_per_s),
      sms_(static_cast<double>(hardware.sms)),
      peak_flops_(peak_flops),
      weight_bytes_(weight_bytes),
      input_bytes_(input_bytes) {}

double GemmKernel::compute_seconds(const GemmShape& shape, double heat) const {
  const GemmParameters& p = parameters_;
  const double efficiency = p.efficiency_cold + (p.efficiency_hot - p.efficiency_cold) * heat;
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles = shape.groups * std::ceil(shape.m / tile.m) * std::ceil(shape.n / tile.n);
    const double per_sm = tiles / sms_;
    const double waves =
        (1 - p.wave_weight) * std::max(per_sm, 1.0) + p.wave_weight * std::ceil(per_sm);
    const double intensity = 1 / (1 / tile.m + 1 / tile.n);
    const double seconds = waves * 2 * tile.m * tile.n * shape.k / (peak_flops_ / sms_) *
                           (intensity + p.tile_overhead) / intensity / efficiency;
    if (best == 0 || seconds < best) best = seconds;
  }
  return best;
}

KernelCost GemmKernel::operator()(const GemmShape& shape, double heat) const {
  KernelCost cost;
  if (!(shape.m > 0 && shape.n > 0 && shape.groups > 0)) return cost;
  cost.flops = 2 * shape.groups * shape.m * shape.n * shape.k;
  cost.hbm_bytes = shape.groups * (shape.n * shape.k * weight_bytes_ +
                                   shape.m * shape.k * input_bytes_ + shape.m * shape.n * kBytes16);
  const double compute = compute_seconds(shape, heat);
  const double memory = cost.hbm_bytes / (parameters_.bandwidth_efficiency * hbm_bytes_per_s_);
  const double limit = smooth_max_(compute, memory);
  cost.seconds = (parameters_.t0_us + parameters_.per_4096_k_us * shape.k / 4096) * 1e-6 + limit;
  cost.compute_bound_s = limit * smooth_max_.share(compute, memory);
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

double all_reduce_seconds(const AllReduceParameters& p, double bytes) {
  return std::min(p.small_latency_us * 1e-6 + bytes / p.small_bytes_per_s,
                  p.large_latency_us * 1e-6 + bytes / p.large_bytes_per_s);
}

}  // namespace servesim
