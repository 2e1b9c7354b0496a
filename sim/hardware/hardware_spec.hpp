/// What a GPU and its engine's host can do, and the parameters of its kernels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace servesim {

/// A GEMM of m tokens with an n x k weight takes
/// `t0 + kt*k/4096 + (c^q + b^q)^(1/q)`: b = bytes/(bandwidth_efficiency * HBM rate); c = the least
/// over thread-block tiles of `waves * 2*tm*tn*k / (peak/SMs) * (ai + te)/ai / e`, with
/// ai = 1/(1/tm + 1/tn), r = tiles/SMs, waves = (1-w)*max(r, 1) + w*ceil(r). e falls from
/// efficiency_cold to efficiency_hot under sustained compute.
struct GemmParameters {
  double t0_us = 0;                 ///< launch to first result
  double per_4096_k_us = 0;         ///< kt: pipeline fill along k
  double smoothness = 1;            ///< q
  double bandwidth_efficiency = 1;  ///< eb
  double wave_weight = 0;           ///< w: how much a partly filled last wave costs
  double tile_overhead = 0;         ///< te
  double efficiency_cold = 1;
  double efficiency_hot = 1;
};

/// Attention of B decoding sequences over their cached tokens, one layer:
/// `t0 + ((c0*max(B*kv_heads/SMs - cw, 0))^q + (kv_bytes/(eb * HBM rate))^q)^(1/q)`.
struct DecodeAttentionParameters {
  double t0_us = 0;
  double per_head_us = 0;        ///< c0: per (sequence, KV head) pair and SM
  double free_heads_per_sm = 0;  ///< cw: pairs per SM that cost nothing extra
  double smoothness = 1;         ///< q
  double bandwidth_efficiency = 1;
};

/// Attention of prompt chunks x_i with past p_i, one kernel a layer:
/// nq = ceil(x*heads/kv_heads/128), span = (x/2 + 64*kv_heads/heads + p)/128,
/// work = sum of kv_heads*nq*(span + cc)*tile/SMs, longest = max of ((x+p)/128 + cc)*tile*sl,
/// `t0 + (work^q + longest^q + bytes^q)^(1/q)`. tile is the time of one 128 x 128 tile pair at head
/// size 128 (it scales with the head size), and grows by hot_factor under sustained compute.
struct PrefillAttentionParameters {
  double t0_us = 0;
  double tile_us = 0;
  double tile_overhead = 0;   ///< cc, in tiles
  double smoothness = 1;      ///< q
  double longest_weight = 1;  ///< sl
  double hot_factor = 1;
};

/// Norms, rotary embedding, activation: `kernels_per_layer * kernel_us + bytes/(efficiency * HBM)`.
struct ElementwiseParameters {
  double kernel_us = 0;
  double bandwidth_efficiency = 1;
  double kernels_per_layer = 0;
};

/// All-reduce of a message over n GPUs: the faster of two algorithms, each latency + bytes/rate.
/// One-shot algorithms have the lower latency, two-shot and ring algorithms the higher rate.
struct AllReduceParameters {
  double small_latency_us = 0;
  double small_bytes_per_s = 1;
  double large_latency_us = 0;
  double large_bytes_per_s = 1;
};

/// Time on the CPU, which a GPU profile carries because both are measured together.
struct HostParameters {
  double step_ms = 0;              ///< scheduling, input preparation, output processing of one step
  double front_end_before_ms = 0;  ///< HTTP and tokeniser: from arrival to the scheduler
  double front_end_after_ms = 0;   ///< detokeniser and HTTP: from the token to the client
};

/// One GPU (and its links to its peers). Rates are per direction and per GPU.
struct HardwareSpec {
  std::string name;
  double memory_bytes = 0;  ///< as the driver reports it
  double hbm_bytes_per_s = 0;
  std::int64_t sms = 0;
  double bf16_flops = 0;             ///< peak dense FLOP/s
  std::optional<double> fp8_flops;   ///< absent: fp8 weights are upcast and computed in bf16
  std::optional<double> int8_flops;  ///< absent: likewise
  std::optional<double> nvlink_bytes_per_s;
  double pcie_bytes_per_s = 0;
  GemmParameters gemm;
  std::optional<GemmParameters> gemm_8bit;  ///< fp8 and int8 GEMMs; absent: as `gemm`
  DecodeAttentionParameters decode_attention;
  std::optional<DecodeAttentionParameters> decode_attention_8bit;  ///< for an 8-bit KV cache
  PrefillAttentionParameters prefill_attention;
  ElementwiseParameters elementwise;
  std::map<std::int64_t, AllReduceParameters> all_reduce;  ///< by number of GPUs
  double sampling_ns_per_logit = 0;                        ///< per sampled row and vocabulary entry
  double heat_time_constant_s = 0;  ///< of the first-order state of sustained compute
  HostParameters host;
  double context_bytes = 0;     ///< workspaces and graphs the engine holds beside the tensors
  double collective_bytes = 0;  ///< buffers of NCCL and the custom all-reduce when TP > 1

  /// vLLM's own test, which decides its defaults: "a100" in the device's name.
  bool is_a100() const { return name.find("a100") != std::string::npos; }

  /// Parameters for `n` GPUs, or for the next larger count the profile has. Throws InputError when
  /// it has none as large.
  const AllReduceParameters& all_reduce_for(std::int64_t n) const;
};

}  // namespace servesim
