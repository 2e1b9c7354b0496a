/// A run that no machine made: timings that come from known parameters, for fits to find again.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fit_forms.hpp"
#include "output.hpp"
#include "planner.hpp"
#include "runner.hpp"

namespace servesim::calibrate::fixtures {

/// A machine and the parameters of its kernels.
struct Truth {
  MachineRates rates;
  Benchmark benchmark;
  GemmParameters gemm;
  DecodeAttentionParameters decode;
  PrefillAttentionParameters prefill;
  double elementwise_us = 5, elementwise_efficiency = 0.5;
};

/// Parameters that differ from where the searches begin; `packs` says what prefill kernels do.
inline Truth truth_of(const MachineRates& rates, const Benchmark& benchmark, bool packs = true) {
  Truth truth{rates, benchmark, {}, {}, {}};
  const auto moved = [](std::vector<double> point) {
    for (std::size_t i = 0; i < point.size(); ++i) point[i] += i % 2 == 0 ? 0.2 : -0.2;
    return point;
  };
  const GemmForm gemm{rates, false, false, benchmark};
  const DecodeForm decode{rates, benchmark};
  const PrefillForm prefill{rates, packs, benchmark};
  truth.gemm = gemm.parameters(moved(gemm.start())).vllm;
  truth.decode = decode.parameters(moved(decode.start()));
  truth.prefill = prefill.parameters(moved(prefill.start()));
  return truth;
}

/// A CPU of four threads, 20 GB/s and 100 GFLOP/s.
inline Truth cpu_truth() {
  Benchmark own;
  own.own = true;
  own.tile_scale = 1.0 / 16;
  own.lowest_efficiency = 0.02;
  return truth_of({20e3, 4, 100e3}, own);
}

/// An H100 by its datasheet.
inline Truth gpu_truth() {
  Benchmark own;
  own.own = true;
  return truth_of({3.35e6, 132, 989.4e6}, own);
}

inline double as_double(std::int64_t value) {
  return static_cast<double>(value);
}
inline MeasuredGemm gemm_row(const Case& c) {
  return {MeasuredEngine::kVllm,
          c.dtype == DType::kFp8 || c.dtype == DType::kInt8,
          {as_double(c.m), as_double(c.n), as_double(c.k)},
          0};
}
inline MeasuredDecode decode_row(const Case& c) {
  return {MeasuredEngine::kVllm, false,
          as_double(c.batch),    as_double(c.context),
          as_double(c.heads),    as_double(c.kv_heads),
          as_double(c.head_dim), 0};
}
inline MeasuredPrefill prefill_row(const Case& c) {
  return {MeasuredEngine::kVllm,
          false,
          as_double(c.batch),
          as_double(c.context),
          0,
          as_double(c.heads),
          as_double(c.kv_heads),
          as_double(c.head_dim),
          0};
}

inline double true_us(const Truth& truth, const Case& c) {
  const double at_full_rate = traffic(c) / truth.rates.hbm_bytes_per_us;
  const std::string family = family_of(c.kernel);
  if (family == "gemm") return predict_us(truth.gemm, truth.rates, gemm_row(c));
  if (family == "decode_attention") return predict_us(truth.decode, truth.rates, decode_row(c));
  if (family == "prefill_attention") return predict_us(truth.prefill, truth.rates, prefill_row(c));
  if (family == "elementwise")
    return truth.elementwise_us + at_full_rate / truth.elementwise_efficiency;
  if (family == "gemv") return 3 + 1.2 * at_full_rate + 1e-4 * as_double(c.n);
  if (c.kernel == Kernel::kPeakFma) return flops(c) / truth.rates.flop_per_us;
  if (family == "sampling") return 4 + 2 * at_full_rate;
  return 2 + at_full_rate;
}

/// The first `most` bf16 cases of each family of the suite, timed by the truth.
inline Measurement synthetic_run(const Truth& truth, bool gpu, std::size_t most) {
  SuiteLimits limits;
  limits.gpu = gpu;
  limits.arena_bytes = 2e9;
  Measurement m;
  std::map<std::string, std::size_t> taken;
  for (const Case& c : suite(limits)) {
    if (c.kernel == Kernel::kSustainedGemm || c.kernel == Kernel::kGraph) continue;
    if (c.kernel == Kernel::kDecodeAttention && c.block_size != 16) continue;
    if (taken[family_of(c.kernel)]++ >= most) continue;
    Timing t;
    t.c = c;
    t.summary.us = t.summary.least = t.summary.p90 = true_us(truth, c);
    t.summary.samples = 5;
    t.summary.passes = 1;
    m.timings.push_back(t);
  }
  return m;
}

/// A GEMM without pause that slows to `ratio` of its first rate within a tenth of a second.
inline std::vector<SustainedPoint> slowing(double ratio) {
  std::vector<SustainedPoint> points;
  for (int i = 0; i < 200; ++i) {
    SustainedPoint point;
    point.at_s = 0.01 * i;
    point.us = 1000 / ratio - (1000 / ratio - 1000) * std::exp(-point.at_s / 0.1);
    points.push_back(point);
  }
  return points;
}

}  // namespace servesim::calibrate::fixtures
