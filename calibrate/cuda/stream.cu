// Bandwidth kernels: 16 bytes a thread and load, four loads in flight, a grid of a few waves.
#include <cuda_runtime.h>

#include <algorithm>

#include "cuda_common.hpp"

namespace servesim::calibrate::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;

/// Blocks that cover `count` vectors, capped: the rest is walked by the grid.
int blocks_for(std::int64_t count) {
  constexpr std::int64_t kMost = 132 * 16;
  const std::int64_t needed = (count + kThreads * kUnroll - 1) / (kThreads * kUnroll);
  return static_cast<int>(std::clamp<std::int64_t>(needed, 1, kMost));
}

/// Calls body(i) for all i below `count`, kUnroll apart by a block's width.
template <class Body>
__device__ void for_each_tile(std::int64_t count, const Body& body) {
  const std::int64_t tile = static_cast<std::int64_t>(kThreads) * kUnroll;
  for (std::int64_t first = blockIdx.x * tile; first < count; first += gridDim.x * tile) {
    body(first + threadIdx.x);
  }
}

__global__ void __launch_bounds__(kThreads)
    read_kernel(const uint4* __restrict__ from, std::int64_t count, std::uint32_t* sum) {
  std::uint32_t total = 0;
  for_each_tile(count, [&](std::int64_t i) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t at = i + u * kThreads;
      v[u] = at < count ? from[at] : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) total += v[u].x + v[u].y + v[u].z + v[u].w;
  });
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, total);
}

__global__ void __launch_bounds__(kThreads)
    write_kernel(uint4* __restrict__ to, std::int64_t count, std::uint32_t bits) {
  const uint4 v = make_uint4(bits, bits, bits, bits);
  for_each_tile(count, [&](std::int64_t i) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t at = i + u * kThreads;
      if (at < count) to[at] = v;
    }
  });
}

__global__ void __launch_bounds__(kThreads)
    copy_kernel(uint4* __restrict__ to, const uint4* __restrict__ from, std::int64_t count) {
  for_each_tile(count, [&](std::int64_t i) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t at = i + u * kThreads;
      if (at < count) v[u] = from[at];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t at = i + u * kThreads;
      if (at < count) to[at] = v[u];
    }
  });
}

__device__ float4 triad_of(const float4& b, const float4& c) {
  return make_float4(b.x + 3 * c.x, b.y + 3 * c.y, b.z + 3 * c.z, b.w + 3 * c.w);
}

__global__ void __launch_bounds__(kThreads)
    triad_kernel(float4* __restrict__ a, const float4* __restrict__ b, const float4* __restrict__ c,
                 std::int64_t count) {
  for_each_tile(count, [&](std::int64_t i) {
    float4 left[kUnroll], right[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t at = i + u * kThreads;
      if (at < count) {
        left[u] = b[at];
        right[u] = c[at];
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t at = i + u * kThreads;
      if (at < count) a[at] = triad_of(left[u], right[u]);
    }
  });
}

__global__ void empty_kernel() {}

template <class T>
__global__ void fill_kernel(T* to, std::int64_t count, DType type, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    to[i] = static_cast<T>(pattern(type, seed, static_cast<std::uint64_t>(i)));
  }
}

template <class T>
void fill_as(void* memory, std::int64_t bytes, DType type, std::uint64_t seed,
             cudaStream_t stream) {
  constexpr int kBlocks = 4096;
  fill_kernel<T><<<kBlocks, kThreads, 0, stream>>>(
      static_cast<T*>(memory), bytes / static_cast<std::int64_t>(sizeof(T)), type, seed);
}

}  // namespace

void fill(void* memory, std::int64_t bytes, DType type, std::uint64_t seed, cudaStream_t stream) {
  switch (bytes_of(type, 2)) {
    case 8:
      fill_as<std::uint32_t>(memory, bytes, type, seed, stream);
      break;
    case 4:
      fill_as<std::uint16_t>(memory, bytes, type, seed, stream);
      break;
    default:
      fill_as<std::uint8_t>(memory, bytes, type, seed, stream);
  }
  require(cudaGetLastError(), "filling an arena");
}

void launch_read(const void* from, std::int64_t bytes, std::uint32_t* sum, cudaStream_t stream) {
  read_kernel<<<blocks_for(bytes / 16), kThreads, 0, stream>>>(static_cast<const uint4*>(from),
                                                               bytes / 16, sum);
}

void launch_write(void* to, std::int64_t bytes, float value, cudaStream_t stream) {
  std::uint32_t bits = 0;
  static_assert(sizeof(bits) == sizeof(value));
  __builtin_memcpy(&bits, &value, sizeof(bits));
  write_kernel<<<blocks_for(bytes / 16), kThreads, 0, stream>>>(static_cast<uint4*>(to), bytes / 16,
                                                                bits);
}

void launch_copy(void* to, const void* from, std::int64_t bytes, cudaStream_t stream) {
  copy_kernel<<<blocks_for(bytes / 16), kThreads, 0, stream>>>(
      static_cast<uint4*>(to), static_cast<const uint4*>(from), bytes / 16);
}

void launch_triad(float* a, const float* b, const float* c, std::int64_t bytes,
                  cudaStream_t stream) {
  triad_kernel<<<blocks_for(bytes / 16), kThreads, 0, stream>>>(
      reinterpret_cast<float4*>(a), reinterpret_cast<const float4*>(b),
      reinterpret_cast<const float4*>(c), bytes / 16);
}

void launch_empty(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
}

}  // namespace servesim::calibrate::cuda
