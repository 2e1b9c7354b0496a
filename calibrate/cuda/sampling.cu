// Softmax over a vocabulary, and drawing a token by top-k and top-p: a block a row. The k largest
// logits are found by a radix select over their bits, ranked in shared memory, and raced with
// exponential noise, as engines draw.
#include <cuda_runtime.h>

#include "cuda_common.hpp"
#include "kernel_case.hpp"

namespace servesim::calibrate::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kMostTop = 64;
static_assert(kTopK <= kMostTop, "room for the k largest");

template <class Join>
__device__ float joined(float value, float* parts, const Join& join) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = join(value, __shfl_xor_sync(~0u, value, offset));
  }
  __syncthreads();  // of an earlier use of `parts`
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int w = 1; w < kThreads / 32; ++w) value = join(value, parts[w]);
  return value;
}

__global__ void __launch_bounds__(kThreads)
    softmax_kernel(const float4* __restrict__ logits, float4* __restrict__ out, int vectors,
                   float scale) {
  __shared__ float parts[kThreads / 32];
  const float4* row = logits + static_cast<std::int64_t>(blockIdx.x) * vectors;
  float4* to = out + static_cast<std::int64_t>(blockIdx.x) * vectors;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    const float4 v = row[i];
    most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  most = joined(most, parts, [](float a, float b) { return fmaxf(a, b); });
  const auto weight = [=](float v) { return __expf(scale * (v - most)); };
  float sum = 0;
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    const float4 v = row[i];
    sum += weight(v.x) + weight(v.y) + weight(v.z) + weight(v.w);
  }
  sum = joined(sum, parts, [](float a, float b) { return a + b; });
  const float factor = 1 / sum;
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    const float4 v = row[i];
    to[i] = make_float4(weight(v.x) * factor, weight(v.y) * factor, weight(v.z) * factor,
                        weight(v.w) * factor);
  }
}

/// Bits that compare like the floats they come from.
__device__ std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/// The k-th largest of a row, as ordered bits: eight bits a pass.
__device__ std::uint32_t kth_largest(const float* row, int n, int k, int* histogram, int* chosen) {
  std::uint32_t prefix = 0, mask = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += kThreads) histogram[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += kThreads) {
      const std::uint32_t bits = ordered(row[i]);
      if ((bits & mask) == prefix) atomicAdd(&histogram[bits >> shift & 255], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 255, left = k;
      while (digit > 0 && histogram[digit] < left) left -= histogram[digit--];
      chosen[0] = digit;
      chosen[1] = left;
    }
    __syncthreads();
    prefix |= static_cast<std::uint32_t>(chosen[0]) << shift;
    mask |= 255u << shift;
    k = chosen[1];
    __syncthreads();
  }
  return prefix;
}

__global__ void __launch_bounds__(kThreads)
    sample_kernel(const float* __restrict__ logits, std::int32_t* __restrict__ tokens, int n,
                  float scale, std::uint64_t noise_seed) {
  __shared__ int histogram[256];
  __shared__ int chosen[2], found;
  __shared__ float values[kMostTop], sorted[kMostTop];
  __shared__ int ids[kMostTop], sorted_ids[kMostTop];
  const std::int64_t row_at = blockIdx.x;
  const float* row = logits + row_at * n;
  const int k = min(static_cast<int>(kTopK), n);
  const std::uint32_t threshold = kth_largest(row, n, k, histogram, chosen);
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += kThreads) {
    if (ordered(row[i]) < threshold) continue;
    const int slot = atomicAdd(&found, 1);
    if (slot >= kMostTop) continue;  // equal logits at the threshold
    values[slot] = row[i];
    ids[slot] = i;
  }
  __syncthreads();
  const int kept = min(found, kMostTop);
  if (static_cast<int>(threadIdx.x) < kept) {
    const float mine = values[threadIdx.x];
    const int id = ids[threadIdx.x];
    int rank = 0;
    for (int j = 0; j < kept; ++j) {
      rank += values[j] > mine || (values[j] == mine && ids[j] < id) ? 1 : 0;
    }
    sorted[rank] = mine;
    sorted_ids[rank] = id;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const int top = min(k, kept);
  float total = 0, before = 0, best = -1;
  for (int i = 0; i < top; ++i) total += __expf(scale * (sorted[i] - sorted[0]));
  int token = sorted_ids[0];
  for (int i = 0; i < top && before < static_cast<float>(kTopP); ++i) {
    const float p = __expf(scale * (sorted[i] - sorted[0])) / total;
    before += p;
    const auto at = static_cast<std::uint64_t>(row_at * n + sorted_ids[i]);
    const float race = p / fmaxf(-logf(random_unit(noise_seed, at)), 1e-10f);
    if (race <= best) continue;
    best = race;
    token = sorted_ids[i];
  }
  tokens[row_at] = token;
}

}  // namespace

void launch_softmax(const float* logits, float* out, std::int64_t rows, std::int64_t n, float scale,
                    cudaStream_t stream) {
  softmax_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      reinterpret_cast<const float4*>(logits), reinterpret_cast<float4*>(out),
      static_cast<int>(n / 4), scale);
}

void launch_sample(const float* logits, std::int32_t* tokens, std::int64_t rows, std::int64_t n,
                   float scale, std::uint64_t noise_seed, cudaStream_t stream) {
  sample_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      logits, tokens, static_cast<int>(n), scale, noise_seed);
}

}  // namespace servesim::calibrate::cuda
