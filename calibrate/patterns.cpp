#include "patterns.hpp"

#include <cmath>
#include <cstring>

namespace servesim::calibrate {
namespace {

/// A float of `mantissa` bits and exponent bias `bias`; subnormals and infinities do not occur.
double small_float(std::uint32_t bits, int width, int mantissa, int bias) {
  const double sign = (bits >> (width - 1) & 1) != 0 ? -1 : 1;
  const int exponent =
      static_cast<int>(bits >> mantissa & ((1u << (width - 1 - mantissa)) - 1)) - bias;
  const double fraction = static_cast<double>(bits & ((1u << mantissa) - 1));
  return sign * std::ldexp(1 + std::ldexp(fraction, -mantissa), exponent);
}

}  // namespace

double pattern_value(DType type, std::uint32_t bits, bool high) {
  switch (type) {
    case DType::kBf16:
      return small_float(bits, 16, 7, 127);
    case DType::kFp16:
      return small_float(bits, 16, 10, 15);
    case DType::kFp8:
      return small_float(bits, 8, 3, 7);
    case DType::kInt8:
      return static_cast<double>(static_cast<std::int8_t>(bits));
    case DType::kInt4:
      return static_cast<double>(static_cast<int>(high ? bits >> 4 & 15 : bits & 15) - 8);
    case DType::kFp32:
      return small_float(bits, 32, 23, 127);
  }
  return 0;
}

std::uint16_t to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace servesim::calibrate
