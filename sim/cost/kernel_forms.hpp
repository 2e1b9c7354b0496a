/// The forms of kernel times, in microseconds, as functions of their parameters. Templates over the
/// smooth maximum, so that the simulator can take a tabulated one and the fit an exact one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "hardware/kernel_parameters.hpp"

namespace servesim {

/// (a^q + b^q)^(1/q), computed.
struct ExactMax {
  double q = 1;
  double operator()(double a, double b) const {
    const double high = std::max(a, b);
    if (!(high > 0)) return 0;
    return high * std::pow(1 + std::pow(std::min(a, b) / high, q), 1 / q);
  }
};

/// The rates the forms need: HBM bytes per us, streaming multiprocessors, peak FLOP per us of the
/// data type.
struct MachineRates {
  double hbm_bytes_per_us = 0;
  double sms = 0;
  double flop_per_us = 0;
};

/// Sizes of a GEMM: `groups` independent products of m x k inputs with their own n x k weights
/// (1 group unless experts).
struct GemmShape {
  double m = 0;
  double n = 0;
  double k = 0;
  double groups = 1;
};

/// The two limits of a GEMM and what comes on top.
struct GemmLimits {
  double compute_us = 0;
  double overhead_us = 0;
  double limit_us = 0;  ///< smooth maximum of compute and memory
  double total_us() const { return overhead_us + limit_us; }
};

/// Efficiency under `heat` in [0, 1]: time, not rate, is interpolated.
inline double heated_efficiency(const GemmParameters& p, double heat) {
  return 1 / ((1 - heat) / p.efficiency_cold + heat / p.efficiency_hot);
}

/// The least compute time over thread-block tiles, k cut into `split` parts.
inline double tiled_compute_us(const GemmParameters& p, double sms, double sm_flop_per_us,
                               const GemmShape& shape, double split) {
  struct Tile {
    double m, n;
  };
  constexpr std::array kTiles{Tile{64, 64},   Tile{64, 128},  Tile{128, 64}, Tile{64, 256},
                              Tile{128, 128}, Tile{128, 256}, Tile{256, 128}};
  double least = 0;
  for (const Tile& tile : kTiles) {
    const double tile_m = tile.m * p.tile_scale;
    const double tile_n = tile.n * p.tile_scale;
    const double tiles = shape.groups * std::ceil(shape.m / tile_m) * std::ceil(shape.n / tile_n);
    const double r = tiles * split / sms;
    const double waves = (1 - p.wave_weight) * std::max(r, 1.0) + p.wave_weight * std::ceil(r);
    const double slowness = p.tile_overhead * (1 / tile_m + 1 / tile_n);
    const double us = waves * 2 * tile_m * tile_n * (shape.k / split + p.fill_k) / sm_flop_per_us *
                      (1 + slowness * slowness);
    if (least == 0 || us < least) least = us;
  }
  return least;
}

/// The least over thread-block tiles and splits of k of max_q(compute, memory) + overheads:
/// compute = waves * 2 tm tn (k/split + fill_k) / (peak/SMs) * (1 + (te/ai)^2) / efficiency,
/// ai = 1/(1/tm + 1/tn), r = groups * tiles * split / SMs, waves = (1-w) max(r, 1) + w ceil(r);
/// overheads = t0 + per_4096_k * k/split/4096 and, with a split,
/// split_us + split_traffic * split * (8mn bytes).
template <class Max>
GemmLimits gemm_limits(const GemmParameters& p, const MachineRates& machine, const GemmShape& shape,
                       double memory_us, double heat, const Max& max) {
  constexpr double kDeepestSplit = 16;
  constexpr double kShortestSplit = 128;
  const double sm_rate = machine.flop_per_us / machine.sms * heated_efficiency(p, heat);
  const double partial_sums_us =
      p.split_traffic * shape.groups * shape.m * shape.n * 8 / machine.hbm_bytes_per_us;
  GemmLimits best;
  for (double split = 1; split <= kDeepestSplit; split *= 2) {
    if (split > 1 && shape.k / split < kShortestSplit) break;
    GemmLimits limits;
    limits.compute_us = tiled_compute_us(p, machine.sms, sm_rate, shape, split);
    limits.limit_us = max(limits.compute_us, memory_us);
    limits.overhead_us = p.t0_us + p.per_4096_k_us * shape.k / split / 4096;
    if (split > 1) limits.overhead_us += p.split_us + partial_sums_us * split;
    if (split == 1 || limits.total_us() < best.total_us()) best = limits;
  }
  return best;
}

/// A correction table at `size`; 1 for an empty one.
inline double correction_at(const std::vector<GemmCorrection>& table, double size) {
  if (table.empty()) return 1;
  const auto above = std::find_if(table.begin(), table.end(),
                                  [size](const GemmCorrection& c) { return c.size >= size; });
  if (above == table.begin()) return above->factor;
  const GemmCorrection& low = *(above - 1);
  if (above == table.end()) return low.factor;
  const double share = std::log(size / low.size) / std::log(above->size / low.size);
  return low.factor + share * (above->factor - low.factor);
}

/// What the tables say of m rows and n columns.
inline double gemm_correction(const GemmParameters& p, double m, double n) {
  return correction_at(p.corrections, m) * correction_at(p.n_corrections, n);
}

/// Quantisation of the m x k activations before an 8-bit GEMM.
inline double quantize_us(const GemmParameters& p, double m, double k) {
  return p.quantize_us + p.quantize_ps_per_element * m * k * 1e-6;
}

/// Sizes of decode attention, one layer of one rank.
struct DecodeAttentionShape {
  double seqs = 0;
  double context = 0;  ///< tokens per sequence
  double q_heads = 0;
  double kv_heads = 0;
  double kv_bytes = 0;  ///< of all sequences together
};

/// Whether every query head has its own KV head.
inline bool is_mha(double q_heads, double kv_heads) {
  return q_heads == kv_heads && kv_heads > 1;
}

/// Share of the KV cache found in L2 when a benchmark repeats the kernel; a server finds none.
inline double benchmark_l2_share(const DecodeAttentionParameters& p, double kv_bytes) {
  return 1 / (1 + std::pow(kv_bytes / p.l2_bytes, p.l2_sharpness));
}

/// What (sequence, KV head) pairs cost beyond those that fit at once.
inline double decode_heads_us(const DecodeAttentionParameters& p, double sms, double seqs,
                              double q_heads, double kv_heads) {
  const double pairs = seqs * kv_heads / sms;
  return p.per_head_us * std::max(pairs - p.free_heads_per_sm, 0.0) *
         (is_mha(q_heads, kv_heads) ? p.mha_head_factor : 1);
}

/// `t0 + length*ctx/(ctx + length_tokens) - saving
///  + max_q(per_head * max(seqs*kv_heads/SMs - free, 0), memory)`, where
/// memory = bytes/(bandwidth_efficiency * HBM) + ramp*bytes/(bytes + ramp_bytes), or
/// bytes/(l2_speedup * HBM) for the `l2_share` of it.
template <class Max>
double decode_attention_us(const DecodeAttentionParameters& p, const MachineRates& machine,
                           const DecodeAttentionShape& s, double l2_share, const Max& max) {
  const double hbm_us = s.kv_bytes / machine.hbm_bytes_per_us;
  double memory_us = (1 - l2_share) * (hbm_us / p.bandwidth_efficiency +
                                       p.ramp_us * s.kv_bytes / (s.kv_bytes + p.ramp_bytes)) +
                     l2_share * hbm_us / p.l2_speedup;
  if (is_mha(s.q_heads, s.kv_heads)) memory_us *= p.mha_bytes_factor;
  const bool is_short = s.context <= 128 && (s.seqs <= 1 || s.kv_heads <= 1);
  return p.t0_us + p.length_us * s.context / (s.context + p.length_tokens) -
         (is_short ? p.short_saving_us : 0) +
         max(decode_heads_us(p, machine.sms, s.seqs, s.q_heads, s.kv_heads), memory_us);
}

/// Work of prefill attention, summed over the chunks of one kernel: add each chunk, then price.
struct PrefillAttentionWork {
  double tiles = 0;    ///< 128 x 128 tiles of all KV heads, row overheads included
  double longest = 0;  ///< tiles in the longest row
  double bytes = 0;

  /// A chunk of x tokens that see `visible` tokens each on average and `reach` at most.
  /// With packed heads ceil(x * group/128) rows of visible + 64/group tokens a KV head, else
  /// group * ceil(x/128) rows of visible + min(x, 64).
  void add(const PrefillAttentionParameters& p, double x, double visible, double reach,
           double q_heads, double kv_heads) {
    constexpr double kTile = 128;
    const double group = q_heads / kv_heads;
    const double rows = p.packs_heads ? std::ceil(x * group / kTile) : group * std::ceil(x / kTile);
    const double half = p.packs_heads ? kTile / 2 / group : std::min(x, kTile / 2);
    tiles += kv_heads * rows * ((visible + half) / kTile + p.tile_overhead);
    longest = std::max(longest, reach / kTile + p.tile_overhead);
  }
};

/// Limits of prefill attention.
struct PrefillAttentionLimits {
  double compute_us = 0;  ///< tensor cores, longest row included
  double memory_us = 0;
  double total_us = 0;
};

/// `t0 + max_q(max_q(tiles * tile/SMs, longest * tile * longest_weight), bytes/(eb * HBM))`, with
/// tile = tile_us * head_factor * (1 + (hot_factor - 1) * heat).
template <class Max>
PrefillAttentionLimits prefill_attention_limits(const PrefillAttentionParameters& p,
                                                const MachineRates& machine,
                                                const PrefillAttentionWork& work,
                                                double head_factor, double heat, const Max& max) {
  const double tile_us = p.tile_us * head_factor * (1 + (p.hot_factor - 1) * heat);
  PrefillAttentionLimits limits;
  limits.compute_us =
      max(work.tiles * tile_us / machine.sms, work.longest * tile_us * p.longest_weight);
  limits.memory_us = work.bytes / (p.bandwidth_efficiency * machine.hbm_bytes_per_us);
  limits.total_us = p.t0_us + max(limits.compute_us, limits.memory_us);
  return limits;
}

/// Time of a 128 x 128 attention tile against head size 128. Below 128 only half of it (the
/// products) shrinks, since the softmax works on the scores whatever the head size.
inline double head_dim_factor(double head_dim) {
  return head_dim < 128 ? 0.5 + 0.5 * head_dim / 128 : head_dim / 128;
}

inline double all_reduce_us(const AllReduceAlgorithm& a, double bytes) {
  return a.latency_us + bytes / a.bytes_per_s * 1e6 + a.ramp_us * bytes / (bytes + a.ramp_bytes);
}

/// The engine's own kernel up to its cap, NCCL above.
inline double all_reduce_us(const AllReduceParameters& p, double bytes) {
  return all_reduce_us(bytes <= p.custom_cap_bytes ? p.custom : p.nccl, bytes);
}

}  // namespace servesim
