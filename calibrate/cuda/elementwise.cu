// RMS norm with residual, rotary embedding and SiLU-mul, 16 bytes a thread and access.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda_common.hpp"

namespace servesim::calibrate::cuda {
namespace {

struct Values {
  float v[8];
};

__device__ Values values_of(const uint4& bits) {
  const std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
  Values out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out.v[2 * i] = __uint_as_float(words[i] << 16);
    out.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
  return out;
}

__device__ uint4 packed(const Values& x) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(x.v[2 * i], x.v[2 * i + 1]);
    words[i] = *reinterpret_cast<const std::uint32_t*>(&both);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

constexpr int kNormThreads = 256;
constexpr int kMostPerThread = 4;  // vectors of 8: rows of up to 8192

/// A block a row, which it keeps in registers between the two passes.
__global__ void __launch_bounds__(kNormThreads)
    rms_norm_kernel(const uint4* __restrict__ x, const uint4* __restrict__ residual,
                    const uint4* __restrict__ weight, uint4* __restrict__ residual_out,
                    uint4* __restrict__ out, int vectors) {
  __shared__ float parts[kNormThreads / 32];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * vectors;
  Values kept[kMostPerThread];
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kMostPerThread; ++j) {
    const int i = threadIdx.x + j * kNormThreads;
    if (i >= vectors) continue;
    const Values a = values_of(x[row + i]), b = values_of(residual[row + i]);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      kept[j].v[e] = a.v[e] + b.v[e];
      squares += kept[j].v[e] * kept[j].v[e];
    }
    residual_out[row + i] = packed(kept[j]);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(~0u, squares, offset);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
  __syncthreads();
  float total = 0;
#pragma unroll
  for (int w = 0; w < kNormThreads / 32; ++w) total += parts[w];
  const float scale = rsqrtf(total / static_cast<float>(8 * vectors) + 1e-5f);
#pragma unroll
  for (int j = 0; j < kMostPerThread; ++j) {
    const int i = threadIdx.x + j * kNormThreads;
    if (i >= vectors) continue;
    const Values w = values_of(weight[i]);
    Values normed;
#pragma unroll
    for (int e = 0; e < 8; ++e) normed.v[e] = kept[j].v[e] * scale * w.v[e];
    out[row + i] = packed(normed);
  }
}

/// Eight threads a head, each with 8 pairs.
__global__ void rope_kernel(const uint4* __restrict__ x, const float4* __restrict__ cos_sin,
                            uint4* __restrict__ out, std::int64_t heads, std::int64_t all) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t head = thread / 8;
  const int part = static_cast<int>(thread % 8);
  if (head >= all) return;
  const std::int64_t low = head * 16 + part, high = low + 8;
  const Values a = values_of(x[low]), b = values_of(x[high]);
  const float4* row = cos_sin + head / heads * 32;
  const float4 c0 = row[2 * part], c1 = row[2 * part + 1];
  const float4 s0 = row[16 + 2 * part], s1 = row[16 + 2 * part + 1];
  const float cosine[8] = {c0.x, c0.y, c0.z, c0.w, c1.x, c1.y, c1.z, c1.w};
  const float sine[8] = {s0.x, s0.y, s0.z, s0.w, s1.x, s1.y, s1.z, s1.w};
  Values first, second;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    first.v[e] = a.v[e] * cosine[e] - b.v[e] * sine[e];
    second.v[e] = b.v[e] * cosine[e] + a.v[e] * sine[e];
  }
  out[low] = packed(first);
  out[high] = packed(second);
}

__global__ void silu_mul_kernel(const uint4* __restrict__ x, uint4* __restrict__ out, int vectors) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  const std::int64_t row = blockIdx.y;
  const Values gate = values_of(x[2 * row * vectors + i]);
  const Values up = values_of(x[(2 * row + 1) * vectors + i]);
  Values product;
#pragma unroll
  for (int e = 0; e < 8; ++e) product.v[e] = gate.v[e] / (1 + __expf(-gate.v[e])) * up.v[e];
  out[row * vectors + i] = packed(product);
}

}  // namespace

void launch_rms_norm(const void* x, const void* residual, const void* weight, void* residual_out,
                     void* out, std::int64_t rows, std::int64_t n, cudaStream_t stream) {
  static_assert(kNormThreads * kMostPerThread * 8 >= 8192, "the suite's widest row");
  rms_norm_kernel<<<static_cast<unsigned>(rows), kNormThreads, 0, stream>>>(
      static_cast<const uint4*>(x), static_cast<const uint4*>(residual),
      static_cast<const uint4*>(weight), static_cast<uint4*>(residual_out),
      static_cast<uint4*>(out), static_cast<int>(n / 8));
}

void launch_rope(const void* x, const float* cos_sin, void* out, std::int64_t tokens,
                 std::int64_t heads, cudaStream_t stream) {
  constexpr int kThreads = 128;
  const std::int64_t threads = tokens * heads * 8;
  rope_kernel<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      static_cast<const uint4*>(x), reinterpret_cast<const float4*>(cos_sin),
      static_cast<uint4*>(out), heads, tokens * heads);
}

void launch_silu_mul(const void* x, void* out, std::int64_t rows, std::int64_t n,
                     cudaStream_t stream) {
  constexpr int kThreads = 256;
  const int vectors = static_cast<int>(n / 8);
  const dim3 grid(static_cast<unsigned>((vectors + kThreads - 1) / kThreads),
                  static_cast<unsigned>(rows));
  silu_mul_kernel<<<grid, kThreads, 0, stream>>>(static_cast<const uint4*>(x),
                                                 static_cast<uint4*>(out), vectors);
}

}  // namespace servesim::calibrate::cuda
