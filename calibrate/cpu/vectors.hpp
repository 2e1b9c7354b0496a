/// Vectors of floats of the widest kind this build has, and conversions to them.
#pragma once

#include <cstdint>
#include <cstring>

namespace servesim::calibrate {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif

typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef std::uint32_t Words __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t Integers __attribute__((vector_size(kLanes * 4)));
typedef std::uint16_t Halves __attribute__((vector_size(kLanes * 2)));
typedef std::uint8_t Bytes __attribute__((vector_size(kLanes)));

template <class Vector, class Element>
inline Vector load(const Element* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
inline void store(float* to, Floats v) {
  std::memcpy(to, &v, sizeof(v));
}
inline Floats bits_to_floats(Words bits) {
  Floats v;
  std::memcpy(&v, &bits, sizeof(v));
  return v;
}
inline Floats all_lanes(float value) {
  return Floats{} + value;
}

inline Floats load_bf16(const std::uint16_t* from) {
  return bits_to_floats(__builtin_convertvector(load<Halves>(from), Words) << 16);
}
/// Subnormals included: the exponent is put right by a multiplication.
inline Floats load_fp16(const std::uint16_t* from) {
  const Words wide = __builtin_convertvector(load<Halves>(from), Words);
  const Words magnitude = (wide & 0x7fff) << 13;
  const Floats value = bits_to_floats(magnitude) * 0x1p112f;
  Words bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits_to_floats(bits | (wide & 0x8000) << 16);
}
inline Floats load_int8(const std::int8_t* from) {
  // Shifted to unsigned first: widening signed bytes comes out one by one from GCC 12.
  const Bytes shifted = load<Bytes>(from) ^ 0x80;
  return __builtin_convertvector(__builtin_convertvector(shifted, Integers) - 128, Floats);
}

inline float sum_of(Floats v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

}  // namespace servesim::calibrate
