/// Random operands that host and device compute alike: element i of an arena is a hash of i, so
/// that a reference needs no copy of what the device holds. Every value is exact in its type, with
/// all mantissa bits random: zeros or round numbers would draw less power and run faster.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SERVESIM_HD __host__ __device__
#else
#define SERVESIM_HD
#endif

namespace servesim::calibrate {

enum class DType : std::uint8_t { kBf16, kFp16, kFp8, kInt8, kInt4, kFp32 };

/// 32 random bits for element `index` of stream `seed` (the mixer of SplitMix64).
SERVESIM_HD inline std::uint32_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 16);
}

/// Uniform in (0, 1].
SERVESIM_HD inline float random_unit(std::uint64_t seed, std::uint64_t index) {
  return static_cast<float>((random_bits(seed, index) >> 8) + 1) * 0x1p-24f;
}

/// Patterns repeat after so many elements, a prime, so that arenas are filled by copying.
constexpr std::uint64_t kPatternPeriod = 4'194'301;

/// The bits of element `index`: magnitudes in [0.25, 2) for floats, [-127, 127] without 0 for int8,
/// two values of [-8, 7] in a byte for int4 (`index` counts bytes then).
SERVESIM_HD inline std::uint32_t pattern(DType type, std::uint64_t seed, std::uint64_t index) {
  const std::uint32_t h = random_bits(seed, index % kPatternPeriod);
  const std::uint32_t sign = h >> 31;
  const std::uint32_t step = (h >> 24 & 0x7f) % 3;
  switch (type) {
    case DType::kBf16:
      return sign << 15 | (125 + step) << 7 | (h & 0x7f);
    case DType::kFp16:
      return sign << 15 | (13 + step) << 10 | (h & 0x3ff);
    case DType::kFp8:
      return sign << 7 | (5 + step) << 3 | (h & 7);
    case DType::kInt8: {
      const int value = static_cast<int>(h % 254) - 127;
      return static_cast<std::uint32_t>(value >= 0 ? value + 1 : value) & 0xff;
    }
    case DType::kInt4:
      return h & 0xff;
    case DType::kFp32:
      return sign << 31 | (125 + step) << 23 | (h & 0x7fffff);
  }
  return 0;
}

/// Bytes of `count` stored elements; int4 packs two.
SERVESIM_HD inline std::uint64_t bytes_of(DType type, std::uint64_t count) {
  switch (type) {
    case DType::kBf16:
    case DType::kFp16:
      return 2 * count;
    case DType::kFp8:
    case DType::kInt8:
      return count;
    case DType::kInt4:
      return count / 2;
    case DType::kFp32:
      return 4 * count;
  }
  return 0;
}

/// The value of a pattern; of an int4 byte the low half first (`high` takes the other).
double pattern_value(DType type, std::uint32_t bits, bool high = false);

/// bfloat16 bits of a float, to nearest even. REQUIRES: finite.
std::uint16_t to_bf16(float value);
float from_bf16(std::uint16_t bits);

/// Values that stand in an arena of `type` from byte `offset` on.
struct Operand {
  DType type = DType::kBf16;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  ///< bytes; a multiple of the element's size

  /// Value i, counted in elements (int4: in half bytes).
  double operator()(std::uint64_t i) const {
    if (type == DType::kInt4) {
      return pattern_value(type, pattern(type, seed, offset + i / 2), i % 2 == 1);
    }
    return pattern_value(type, pattern(type, seed, offset / bytes_of(type, 1) + i));
  }
};

}  // namespace servesim::calibrate
