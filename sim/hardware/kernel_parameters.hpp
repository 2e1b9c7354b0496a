/// Parameters of GPU kernel times. sim/cost/kernel_forms.hpp has the formulas they stand in;
/// calibrate/ fits them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace servesim {

/// How far measurements of GEMMs of one size lie from the form; interpolated in the size's
/// logarithm.
struct GemmCorrection {
  double size = 1;    ///< m or n
  double factor = 1;  ///< measured / form
};

/// Dense matrix products, see gemm_limits().
struct GemmParameters {
  double t0_us = 0;                 ///< launch to first result
  double per_4096_k_us = 0;         ///< pipeline along k, divided by the split
  double smoothness = 1;            ///< q of the maximum of compute and memory time
  double bandwidth_efficiency = 1;  ///< share of the HBM rate that operands stream at
  double wave_weight = 0;           ///< how much a partly filled last wave costs, 0 to 1
  double tile_overhead =
      0;              ///< te: a tile of intensity ai computes 1/(1 + (te/ai)^2) as fast as the best
  double fill_k = 0;  ///< prologue and epilogue of a tile, as elements along k
  double split_us = 0;         ///< extra launch of the reduction when k is split
  double split_traffic = 0;    ///< share of HBM traffic that partial sums cost when k is split
  double efficiency_cold = 1;  ///< share of the peak after a pause
  double efficiency_hot = 1;   ///< share of the peak under sustained compute
  double quantize_us = 0;      ///< launch of the activations' quantisation (8-bit only)
  double quantize_ps_per_element = 0;  ///< its time per element of the m x k input
  /// How hot the benchmark ran: benchmark_heat * us/(us + benchmark_us) for a kernel that computes
  /// for `us`. Only comparing with the benchmark's rows needs these.
  double benchmark_us = 1e9;
  double benchmark_heat = 1;
  /// Size of the smallest tiles against those of a GPU's tensor cores: a CPU's register tiles are a
  /// sixteenth.
  double tile_scale = 1;
  std::vector<GemmCorrection> corrections;    ///< by m, the input rows
  std::vector<GemmCorrection> n_corrections;  ///< by n, the output columns, on top of these
};

/// Attention of decoding sequences over their cached tokens, see decode_attention_us().
struct DecodeAttentionParameters {
  double t0_us = 0;
  double per_head_us = 0;        ///< per (sequence, KV head) pair and SM
  double free_heads_per_sm = 0;  ///< pairs per SM that cost nothing extra
  double smoothness = 1;         ///< q
  double bandwidth_efficiency = 1;
  double ramp_us = 0;  ///< what filling the memory pipeline costs once KV is far beyond ramp_bytes
  double ramp_bytes = 1;  ///< KV bytes at half of it
  double length_us = 0;   ///< growth with the context of one sequence (splits and their reduction)
  double length_tokens = 1;  ///< context at half of it
  double short_saving_us =
      0;  ///< no reduction for one sequence or one KV head of at most 128 tokens
  double mha_head_factor = 1;   ///< on per_head_us when every query head has its own KV head
  double mha_bytes_factor = 1;  ///< on the memory time then
  double l2_bytes = 1;          ///< KV that stays in L2 between repetitions of the benchmark
  double l2_speedup = 1;        ///< rate of L2 against that of HBM
  double l2_sharpness = 1;      ///< exponent of the transition
};

/// Attention of prompt chunks, see prefill_attention_us().
struct PrefillAttentionParameters {
  double t0_us = 0;
  double tile_us = 0;         ///< one 128 x 128 tile at head size 128 on one SM, after a pause
  double tile_overhead = 0;   ///< start and end of a row of tiles, in tiles
  double smoothness = 1;      ///< q
  double longest_weight = 1;  ///< weight of the longest row of tiles
  double hot_factor = 1;      ///< on tile_us under sustained compute
  double bandwidth_efficiency = 1;
  bool packs_heads = true;    ///< the query heads of a KV head share a tile
  double benchmark_us = 1e9;  ///< see GemmParameters
};

/// One all-reduce algorithm: `latency + bytes/rate + ramp * bytes/(bytes + ramp_bytes)`.
struct AllReduceAlgorithm {
  double latency_us = 0;
  double bytes_per_s = 1;
  double ramp_us = 0;
  double ramp_bytes = 1;
};

/// All-reduce of a message over n GPUs: the engine's own kernel up to its cap, NCCL above.
struct AllReduceParameters {
  AllReduceAlgorithm custom;
  double custom_cap_bytes = 0;  ///< 0: NCCL always
  AllReduceAlgorithm nccl;
};

/// The kernels of one serving engine on one GPU.
struct KernelSet {
  GemmParameters gemm;
  std::optional<GemmParameters> gemm_8bit;  ///< fp8 and int8; absent: as `gemm`
  DecodeAttentionParameters decode_attention;
  std::optional<DecodeAttentionParameters> decode_attention_8bit;  ///< for an 8-bit KV cache
  PrefillAttentionParameters prefill_attention;
  std::optional<PrefillAttentionParameters> prefill_attention_8bit;  ///< for an 8-bit KV cache
  std::map<std::int64_t, AllReduceParameters> all_reduce;            ///< by number of GPUs
};

}  // namespace servesim
