// Weight-only GEMV: a warp a row, 16 bytes of weights a lane and load; and the quantisation of
// activations that precedes an 8-bit GEMM.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "cuda_common.hpp"
#include "kernel_case.hpp"
#include "reference.hpp"

namespace servesim::calibrate::cuda {
namespace {

constexpr int kWarps = 4;

__device__ float sum_of_warp(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

/// The two halves of a 32-bit word as floats.
template <DType kType>
__device__ float2 pair_of(std::uint32_t word) {
  if constexpr (kType == DType::kFp16) {
    return __half22float2(*reinterpret_cast<const __half2*>(&word));
  } else {
    return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
  }
}

/// Dot product of 8 weights and 8 activations of 16 bits.
template <DType kType>
__device__ float dot8(const uint4& w, const uint4& x) {
  const std::uint32_t ws[4] = {w.x, w.y, w.z, w.w}, xs[4] = {x.x, x.y, x.z, x.w};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a = pair_of<kType>(ws[i]), b = pair_of<kType>(xs[i]);
    sum += a.x * b.x + a.y * b.y;
  }
  return sum;
}

template <DType kType>
__global__ void __launch_bounds__(32 * kWarps)
    gemv16_kernel(const uint4* __restrict__ weights, const uint4* __restrict__ x,
                  std::uint16_t* __restrict__ out, int n, int vectors) {
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  if (row >= n) return;
  const uint4* w = weights + static_cast<std::int64_t>(row) * vectors;
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x % 32; i < vectors; i += 32) sum += dot8<kType>(w[i], x[i]);
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 != 0) return;
  out[row] = __bfloat16_as_ushort(__float2bfloat16(sum));
}

/// 16 int8 weights against 16 bf16 activations (two vectors).
__device__ float dot_int8(const uint4& w, const uint4& low, const uint4& high) {
  const std::uint32_t ws[4] = {w.x, w.y, w.z, w.w};
  const std::uint32_t xs[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 first = pair_of<DType::kBf16>(xs[2 * i]);
    const float2 second = pair_of<DType::kBf16>(xs[2 * i + 1]);
    sum += static_cast<float>(static_cast<std::int8_t>(ws[i] & 0xff)) * first.x;
    sum += static_cast<float>(static_cast<std::int8_t>(ws[i] >> 8 & 0xff)) * first.y;
    sum += static_cast<float>(static_cast<std::int8_t>(ws[i] >> 16 & 0xff)) * second.x;
    sum += static_cast<float>(static_cast<std::int8_t>(ws[i] >> 24)) * second.y;
  }
  return sum;
}

__global__ void __launch_bounds__(32 * kWarps)
    gemv_int8_kernel(const uint4* __restrict__ weights, const uint4* __restrict__ x,
                     const __nv_bfloat16* __restrict__ scales, std::uint16_t* __restrict__ out,
                     int n, int vectors) {
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  if (row >= n) return;
  const uint4* w = weights + static_cast<std::int64_t>(row) * vectors;
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x % 32; i < vectors; i += 32) {
    sum += dot_int8(w[i], x[2 * i], x[2 * i + 1]);
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 != 0) return;
  out[row] = __bfloat16_as_ushort(__float2bfloat16(sum * __bfloat162float(scales[row])));
}

/// 8 int4 weights in a word against 8 bf16 activations.
__device__ float dot_int4(std::uint32_t w, const uint4& x) {
  const std::uint32_t xs[4] = {x.x, x.y, x.z, x.w};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = pair_of<DType::kBf16>(xs[i]);
    sum += static_cast<float>(static_cast<int>(w >> (8 * i) & 15) - 8) * pair.x;
    sum += static_cast<float>(static_cast<int>(w >> (8 * i + 4) & 15) - 8) * pair.y;
  }
  return sum;
}

/// A lane's 16 bytes are 32 weights, which share a group's scale: four lanes a group of 128.
__global__ void __launch_bounds__(32 * kWarps)
    gemv_int4_kernel(const uint4* __restrict__ weights, const uint4* __restrict__ x,
                     const __nv_bfloat16* __restrict__ scales, std::uint16_t* __restrict__ out,
                     int n, int vectors, int groups) {
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  if (row >= n) return;
  const uint4* w = weights + static_cast<std::int64_t>(row) * vectors;
  const __nv_bfloat16* row_scales = scales + static_cast<std::int64_t>(row) * groups;
  float sum = 0;
#pragma unroll 2
  for (int i = threadIdx.x % 32; i < vectors; i += 32) {
    const uint4 packed = w[i];
    const float part = dot_int4(packed.x, x[4 * i]) + dot_int4(packed.y, x[4 * i + 1]) +
                       dot_int4(packed.z, x[4 * i + 2]) + dot_int4(packed.w, x[4 * i + 3]);
    sum += part * __bfloat162float(row_scales[i / 4]);
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) out[row] = __bfloat16_as_ushort(__float2bfloat16(sum));
}
static_assert(kInt4Group == 128, "gemv_int4_kernel takes four vectors of 32 weights a scale");

template <bool kFp8>
__device__ std::uint8_t quantised_byte(float value) {
  if constexpr (kFp8) {
    return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
  } else {
    const int rounded = __float2int_rn(value * static_cast<float>(kInt8Scale));
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(max(-127, min(127, rounded))));
  }
}

/// 8 activations a thread: 16 bytes in, 8 out.
template <bool kFp8>
__global__ void quantise_kernel(const uint4* __restrict__ from, uint2* __restrict__ to,
                                std::int64_t vectors) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  const uint4 x = from[i];
  const std::uint32_t words[4] = {x.x, x.y, x.z, x.w};
  std::uint32_t packed[2] = {0, 0};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 pair = pair_of<DType::kBf16>(words[j]);
    const std::uint32_t two = quantised_byte<kFp8>(pair.x) |
                              static_cast<std::uint32_t>(quantised_byte<kFp8>(pair.y)) << 8;
    packed[j / 2] |= two << (16 * (j % 2));
  }
  to[i] = make_uint2(packed[0], packed[1]);
}

}  // namespace

void launch_gemv(DType type, const void* weights, const void* x, const void* scales, void* out,
                 std::int64_t n, std::int64_t k, cudaStream_t stream) {
  const int rows = static_cast<int>(n);
  const int vectors = static_cast<int>(bytes_of(type, static_cast<std::uint64_t>(k)) / 16);
  const int blocks = (rows + kWarps - 1) / kWarps;
  const auto* w = static_cast<const uint4*>(weights);
  const auto* in = static_cast<const uint4*>(x);
  const auto* s = static_cast<const __nv_bfloat16*>(scales);
  auto* y = static_cast<std::uint16_t*>(out);
  switch (type) {
    case DType::kFp16:
      gemv16_kernel<DType::kFp16><<<blocks, 32 * kWarps, 0, stream>>>(w, in, y, rows, vectors);
      break;
    case DType::kInt8:
      gemv_int8_kernel<<<blocks, 32 * kWarps, 0, stream>>>(w, in, s, y, rows, vectors);
      break;
    case DType::kInt4:
      gemv_int4_kernel<<<blocks, 32 * kWarps, 0, stream>>>(w, in, s, y, rows, vectors,
                                                           static_cast<int>(k / kInt4Group));
      break;
    default:
      gemv16_kernel<DType::kBf16><<<blocks, 32 * kWarps, 0, stream>>>(w, in, y, rows, vectors);
  }
}

void launch_quantise(DType type, const void* from, void* to, std::int64_t count,
                     cudaStream_t stream) {
  constexpr int kThreads = 256;
  const std::int64_t vectors = count / 8;
  const auto blocks = static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
  const auto* in = static_cast<const uint4*>(from);
  auto* out = static_cast<uint2*>(to);
  if (type == DType::kFp8) {
    quantise_kernel<true><<<blocks, kThreads, 0, stream>>>(in, out, vectors);
  } else {
    quantise_kernel<false><<<blocks, kThreads, 0, stream>>>(in, out, vectors);
  }
}

}  // namespace servesim::calibrate::cuda
