/// What a GPU and its engine's host can do, and the parameters of its kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hardware/kernel_parameters.hpp"

namespace servesim {

/// Whose kernels run. vLLM's are the default; where a profile has none of TensorRT-LLM, vLLM's
/// stand in.
enum class KernelFamily : std::uint8_t { kVllm, kTensorRtLlm };

/// Norms, rotary embedding, activation: `kernels_per_layer * kernel_us + bytes/(efficiency * HBM)`.
struct ElementwiseParameters {
  double kernel_us = 0;
  double bandwidth_efficiency = 1;
  double kernels_per_layer =
      0;  ///< two norms, rotary embedding, KV write, activation; norms of q and k are one more
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
  std::string hash;         ///< of the file it was loaded from, which names it beyond doubt
  double memory_bytes = 0;  ///< as the driver reports it
  double hbm_bytes_per_s = 0;
  std::int64_t sms = 0;
  double bf16_flops = 0;             ///< peak dense FLOP/s
  std::optional<double> fp8_flops;   ///< absent: fp8 weights are upcast and computed in bf16
  std::optional<double> int8_flops;  ///< absent: likewise
  std::optional<double> nvlink_bytes_per_s;
  double pcie_bytes_per_s = 0;
  double pcie_efficiency = 1;          ///< share of it that copies of pinned memory reach
  bool pcie_overlaps_compute = false;  ///< whether KV moves over it beside kernels, or before them
  KernelSet kernels;                   ///< vLLM's
  std::optional<KernelSet> tensorrt_llm;  ///< TensorRT-LLM's
  ElementwiseParameters elementwise;
  double sampling_ns_per_logit = 0;  ///< per sampled row and vocabulary entry
  double heat_time_constant_s = 0;   ///< of the first-order state of sustained compute
  HostParameters host;
  double context_bytes = 0;     ///< workspaces and graphs the engine holds beside the tensors
  double collective_bytes = 0;  ///< buffers of NCCL and the custom all-reduce when TP > 1

  /// vLLM's own test, which decides its defaults: "a100" in the device's name.
  bool is_a100() const { return name.find("a100") != std::string::npos; }

  const KernelSet& kernels_of(KernelFamily family) const {
    return family == KernelFamily::kTensorRtLlm && tensorrt_llm ? *tensorrt_llm : kernels;
  }
  /// Parameters for `n` GPUs, or for the next larger count the set has. Throws InputError when it
  /// has none as large.
  const AllReduceParameters& all_reduce_for(std::int64_t n,
                                            KernelFamily family = KernelFamily::kVllm) const;
};

}  // namespace servesim
