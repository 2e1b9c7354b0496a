#include "model/number_format.hpp"

#include "core/error.hpp"

namespace servesim {

double bytes_per_weight(WeightFormat format) {
  switch (format) {
    case WeightFormat::k16Bit:
      return kBytes16;
    case WeightFormat::kFp8:
    case WeightFormat::kInt8:
      return 1;
    case WeightFormat::kInt4:
      return 0.5 + kBytes16 / kInt4GroupSize;
  }
  return kBytes16;
}

double bytes_per_element(KvFormat format, double head_dim) {
  switch (format) {
    case KvFormat::k16Bit:
      return kBytes16;
    case KvFormat::kFp8:
      return 1;
    case KvFormat::kInt8:
      return 1 + kBytes16 / head_dim;
    case KvFormat::kInt4:
      return 0.5 + 2 * kBytes16 / head_dim;
  }
  return kBytes16;
}

bool needs_dequantisation(KvFormat format) {
  return format == KvFormat::kInt8 || format == KvFormat::kInt4;
}

WeightFormat parse_weight_format(std::string_view text) {
  if (text == "none") return WeightFormat::k16Bit;
  if (text == "fp8") return WeightFormat::kFp8;
  if (text == "int8") return WeightFormat::kInt8;
  if (text == "int4") return WeightFormat::kInt4;
  throw unknown_name("quantization", text, {"none", "fp8", "int8", "int4"});
}

KvFormat parse_kv_format(std::string_view text) {
  if (text == "auto" || text == "bfloat16" || text == "float16") return KvFormat::k16Bit;
  if (text == "fp8" || text == "fp8_e4m3" || text == "fp8_e5m2") return KvFormat::kFp8;
  if (text == "int8") return KvFormat::kInt8;
  if (text == "int4") return KvFormat::kInt4;
  throw unknown_name(
      "kv-cache-dtype", text,
      {"auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "int8", "int4"});
}

void check_dtype(std::string_view text) {
  if (text == "auto" || text == "bfloat16" || text == "float16" || text == "half") return;
  throw unknown_name("dtype", text, {"auto", "bfloat16", "float16", "half"});
}

}  // namespace servesim
