/// How weights and KV entries are stored.
#pragma once

#include <cstdint>
#include <string_view>

namespace servesim {

/// Storage of the weights of the linear layers, as `--quantization` names it. Embeddings, norms,
/// routers and the LM head stay in 16 bits whatever the format.
enum class WeightFormat : std::uint8_t {
  k16Bit,  ///< bf16 or fp16: 2 bytes per weight
  kFp8,    ///< 1 byte per weight, computed at the fp8 peak
  kInt8,   ///< 1 byte per weight, computed at the int8 peak (W8A8)
  kInt4,   ///< weight-only: half a byte plus one 16-bit scale per group, computed at the bf16 peak
};

/// Storage of K and V, as `--kv-cache-dtype` names it.
enum class KvFormat : std::uint8_t {
  k16Bit,  ///< bf16 or fp16
  kFp8,    ///< one scale per tensor: none to store beside the values
  kInt8,   ///< one 16-bit scale per token and head
  kInt4,   ///< a 16-bit scale and a 16-bit zero point per token and head (KIVI, arXiv:2402.02750,
           ///< per token)
};

/// Weights that share one 16-bit scale in an int4 checkpoint (the GPTQ and AWQ default).
inline constexpr double kInt4GroupSize = 128;

/// Bytes of one 16-bit value.
inline constexpr double kBytes16 = 2;

/// Bytes per weight of a linear layer, scales included. The scales of fp8 and int8 (one per output
/// channel) are below a thousandth of the weights and are left out.
double bytes_per_weight(WeightFormat format);

/// Bytes per element of K or V of a head of `head_dim` elements, scales and zero points included.
double bytes_per_element(KvFormat format, double head_dim);

/// Whether reading K and V back takes arithmetic of its own (integer formats).
bool needs_dequantisation(KvFormat format);

/// "none" | "fp8" | "int8" | "int4". Throws InputError for anything else.
WeightFormat parse_weight_format(std::string_view text);
/// "auto" (16 bits) | "bfloat16" | "float16" | "fp8" (also fp8_e4m3, fp8_e5m2) | "int8" | "int4".
KvFormat parse_kv_format(std::string_view text);
/// Checks a `--dtype`: "auto", "bfloat16", "float16" and "half" all take 2 bytes and price alike.
/// Throws InputError for anything else (32-bit serving is not modelled).
void check_dtype(std::string_view text);

}  // namespace servesim
