// Causal prefill attention, head size 128, on tensor cores: a block computes 64 queries of a head,
// a warp 16 of them, over tiles of 64 keys that cp.async brings into shared memory while the last
// tile is worked on. Softmax is kept running in registers (FlashAttention-2, Dao 2023). mma.sync
// m16n8k16 throughout: it runs on every GPU from sm_80 on, slower on Hopper than wgmma would.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda_common.hpp"
#include "layout.hpp"

namespace servesim::calibrate::cuda {
namespace {

constexpr int kHeadDim = 128;
constexpr int kQueryTile = 64, kKeyTile = 64;
constexpr int kWarps = kQueryTile / 16;
constexpr int kPitch = kHeadDim + 8;  // elements; shifts rows by four banks
constexpr int kTileElements = kKeyTile * kPitch;
constexpr int kSharedBytes = 4 * kTileElements * 2;  // K and V, two stages

__device__ void copy16(void* to_shared, const void* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ void zero16(void* to_shared) {
  *static_cast<uint4*>(to_shared) = make_uint4(0, 0, 0, 0);
}

/// c += a b of 16x8x16: a row-major, b column-major.
__device__ void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two 8x8 matrices, transposed; lanes 0-15 give the addresses of their rows.
__device__ void load_transposed(std::uint32_t& b0, std::uint32_t& b1, const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(b0), "=r"(b1)
               : "r"(address)
               : "memory");
}

__device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

/// Brings keys [first, first + 64) of one head into a tile; rows past the prompt are zeros.
__device__ void load_tile(__nv_bfloat16* tile, const __nv_bfloat16* from, std::int64_t row_pitch,
                          int first, int tokens) {
  constexpr int kVectors = kHeadDim / 8;
  for (int i = threadIdx.x; i < kKeyTile * kVectors; i += 32 * kWarps) {
    const int row = i / kVectors, column = i % kVectors * 8;
    __nv_bfloat16* to = tile + row * kPitch + column;
    if (first + row < tokens) {
      copy16(to, from + (first + row) * row_pitch + column);
    } else {
      zero16(to);
    }
  }
}

__device__ float max_of_four(float v) {
  v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
  return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
__device__ float sum_of_four(float v) {
  v += __shfl_xor_sync(~0u, v, 1);
  return v + __shfl_xor_sync(~0u, v, 2);
}

using Query = std::uint32_t[kHeadDim / 16][4];
using Scores = float[kKeyTile / 8][4];
using Out = float[kHeadDim / 8][4];

/// Running softmax of a warp's 16 queries: a lane has two of them, and their share of the output.
struct Running {
  float most[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
  Out out = {};
};

/// Queries as A operands: 8 steps of 16 dimensions. Rows past the prompt are zeros.
__device__ __forceinline__ void load_queries(Query& query, const __nv_bfloat16* q,
                                             std::int64_t pitch, int warp_row, int tokens,
                                             int lane) {
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int row = warp_row + a_row(lane, part);
      const int column = 16 * step + a_column(lane, part);
      query[step][part] =
          row < tokens ? *reinterpret_cast<const std::uint32_t*>(q + row * pitch + column) : 0u;
    }
  }
}

/// Products of queries and a tile of keys, scaled for exp2; keys after a query are masked on tiles
/// that meet the diagonal.
__device__ __forceinline__ void score(Scores& scores, const Query& query, const __nv_bfloat16* keys,
                                      int first_key, int warp_row, bool diagonal, int lane) {
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
#pragma unroll
    for (int n = 0; n < kKeyTile / 8; ++n) {
      const __nv_bfloat16* key = keys + (8 * n + b_column(lane)) * kPitch + 16 * step;
      mma(scores[n], query[step], *reinterpret_cast<const std::uint32_t*>(key + b_row(lane, 0)),
          *reinterpret_cast<const std::uint32_t*>(key + b_row(lane, 1)));
    }
  }
  constexpr float kScale = 0.08838834764831845f * 1.4426950408889634f;  // log2(e)/sqrt(128)
#pragma unroll
  for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = first_key + 8 * n + c_column(lane, i);
      const int row = warp_row + c_row(lane, i);
      scores[n][i] = diagonal && column > row ? -INFINITY : scores[n][i] * kScale;
    }
  }
}

/// Turns a tile's scores into weights and rescales what was summed before.
__device__ __forceinline__ void fold(Running& r, Scores& scores) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = r.most[half];
#pragma unroll
    for (int n = 0; n < kKeyTile / 8; ++n) {
      top = fmaxf(top, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
    }
    top = max_of_four(top);  // finite: every row sees the tile's first key
    const float rescale = exp2f(r.most[half] - top);
    r.most[half] = top;
    float added = 0;
#pragma unroll
    for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i)
        added += scores[n][i] = exp2f(scores[n][i] - top);
    }
    r.sum[half] = r.sum[half] * rescale + sum_of_four(added);
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      r.out[n][2 * half] *= rescale;
      r.out[n][2 * half + 1] *= rescale;
    }
  }
}

/// Adds weights times values. Weights as A operands: the layout of two result tiles is that of one
/// 16x16 operand.
__device__ __forceinline__ void add_values(Out& out, const Scores& scores,
                                           const __nv_bfloat16* values, int lane) {
#pragma unroll
  for (int step = 0; step < kKeyTile / 16; ++step) {
    std::uint32_t weights[4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const float(&pair)[4] = scores[2 * step + packed_tile(part)];
      weights[part] = pack(pair[packed_from(part)], pair[packed_from(part) + 1]);
    }
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      std::uint32_t b0, b1;
      load_transposed(b0, b1, values + (16 * step + lane % 16) * kPitch + 8 * n);
      mma(out[n], weights, b0, b1);
    }
  }
}

__device__ __forceinline__ void store(__nv_bfloat16* to, std::int64_t pitch, const Running& r,
                                      int warp_row, int tokens, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + c_row(lane, 2 * half);
    if (row >= tokens) continue;
    const float factor = 1 / r.sum[half];
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      *reinterpret_cast<std::uint32_t*>(to + row * pitch + 8 * n + c_column(lane, 0)) =
          pack(r.out[n][2 * half] * factor, r.out[n][2 * half + 1] * factor);
    }
  }
}

/// Waits for all copies but those of the `younger` groups that were begun last.
template <int younger>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(younger) : "memory");
}

__global__ void __launch_bounds__(32 * kWarps) prefill_kernel(PrefillArguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* tiles = reinterpret_cast<__nv_bfloat16*>(shared);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // The last tiles have most work: they start first.
  const int query_tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int head = blockIdx.y, kv_head = head / (a.heads / a.kv_heads);
  const int warp_row = query_tile * kQueryTile + warp * 16;
  const std::int64_t q_pitch = static_cast<std::int64_t>(a.heads) * kHeadDim;
  const std::int64_t kv_pitch = static_cast<std::int64_t>(a.kv_heads) * kHeadDim;
  const std::int64_t prompt_row = static_cast<std::int64_t>(blockIdx.z) * a.tokens;
  const std::int64_t q_at = prompt_row * q_pitch + head * kHeadDim;
  const std::int64_t kv_at = prompt_row * kv_pitch + kv_head * kHeadDim;
  const auto* k = static_cast<const __nv_bfloat16*>(a.k) + kv_at;
  const auto* v = static_cast<const __nv_bfloat16*>(a.v) + kv_at;
  const auto fetch = [&](int tile) {
    __nv_bfloat16* stage = tiles + tile % 2 * 2 * kTileElements;
    load_tile(stage, k, kv_pitch, tile * kKeyTile, a.tokens);
    load_tile(stage + kTileElements, v, kv_pitch, tile * kKeyTile, a.tokens);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  Query query;
  load_queries(query, static_cast<const __nv_bfloat16*>(a.q) + q_at, q_pitch, warp_row, a.tokens,
               lane);
  Running running;
  const int key_tiles = min(query_tile + 1, (a.tokens + kKeyTile - 1) / kKeyTile);
  fetch(0);
  for (int tile = 0; tile < key_tiles; ++tile) {
    if (tile + 1 < key_tiles) {
      fetch(tile + 1);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    const __nv_bfloat16* keys = tiles + tile % 2 * 2 * kTileElements;
    Scores scores = {};
    const bool diagonal = (tile + 1) * kKeyTile > query_tile * kQueryTile;
    score(scores, query, keys, tile * kKeyTile, warp_row, diagonal, lane);
    fold(running, scores);
    add_values(running.out, scores, keys + kTileElements, lane);
    __syncthreads();  // the next fetch writes where this tile was
  }
  store(static_cast<__nv_bfloat16*>(a.out) + q_at, q_pitch, running, warp_row, a.tokens, lane);
}

}  // namespace

void launch_prefill(const PrefillArguments& a, cudaStream_t stream) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      prefill_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  require(allowed, "shared memory for prefill attention");
  const dim3 grid(static_cast<unsigned>((a.tokens + kQueryTile - 1) / kQueryTile),
                  static_cast<unsigned>(a.heads), static_cast<unsigned>(a.batch));
  prefill_kernel<<<grid, 32 * kWarps, kSharedBytes, stream>>>(a);
}

}  // namespace servesim::calibrate::cuda
