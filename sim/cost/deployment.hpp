/// How a model is stored, sharded and run.
#pragma once

#include <cstdint>
#include <string_view>

#include "hardware/hardware_spec.hpp"
#include "model/number_format.hpp"

namespace servesim {

/// `flash` keeps scores on chip (FlashAttention, arXiv:2205.14135); `naive` writes the scores to
/// HBM, reads them for the softmax, writes the probabilities and reads them again, in three
/// kernels, and computes masked scores too.
enum class AttentionKind : std::uint8_t { kFlash, kNaive };

/// Everything beside model and GPU that decides what a step costs.
struct DeploymentSpec {
  WeightFormat weights = WeightFormat::k16Bit;
  KvFormat kv = KvFormat::k16Bit;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;  ///< stages that the layers are split over
  AttentionKind attention = AttentionKind::kFlash;
  std::int64_t attention_top_k = 0;  ///< tokens a query reads at most (sparse attention); 0: all
  /// Draft tokens per step of an EAGLE-style draft model: one layer and the LM head for each. 0:
  /// none; ngram drafting runs on the host and costs the GPU nothing.
  std::int64_t draft_tokens = 0;
  bool custom_all_reduce = true;  ///< vLLM's --disable-custom-all-reduce: NCCL for every size
  KernelFamily kernels = KernelFamily::kVllm;
};

/// Peak FLOP/s of one GPU in the type that weights of `format` run in: 8-bit weights at the 8-bit
/// peak where the GPU has one, all others at the 16-bit peak.
double peak_flops(const HardwareSpec& hardware, WeightFormat format);

/// "flash" | "naive". Throws InputError for anything else.
AttentionKind parse_attention_kind(std::string_view text);

}  // namespace servesim
