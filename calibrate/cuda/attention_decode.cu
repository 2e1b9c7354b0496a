// Paged decode attention, head size 128: a block a (sequence, KV head, split of the context). Half
// a warp reads one key (16 lanes of 16 bytes), so that a warp works on two tokens at a time; the
// query heads of a KV head share what is read. Splits are joined by a second kernel.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <stdexcept>

#include "cuda_common.hpp"
#include "layout.hpp"

namespace servesim::calibrate::cuda {
namespace {

constexpr int kHeadDim = 128;
constexpr int kWarps = 4;
constexpr int kLanes = 16;  // that share a token
constexpr int kPerLane = kHeadDim / kLanes;
constexpr int kGroups = 2 * kWarps;  // tokens in flight in a block

struct Eight {
  float v[kPerLane];
};

__device__ Eight eight_of(const uint4& bits) {
  const std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
  Eight e;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    e.v[2 * i] = __uint_as_float(words[i] << 16);
    e.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
  return e;
}

__device__ float sum_of_half_warp(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(~0u, value, offset);
  }
  return value;
}

/// Running softmax of one query in one half-warp: every lane has `most` and `sum`, and its 8
/// dimensions of the weighted values.
struct Running {
  float most, sum;
  Eight out;
};

/// What a block works on.
struct Place {
  int split, kv_head, sequence;
  std::int64_t row;  ///< of the first of its query heads
};

template <int kQueries>
__device__ __forceinline__ void start(const DecodeArguments& a, const Place& place, int lane,
                                      Eight (&query)[kQueries], Running (&running)[kQueries]) {
  const auto* q = static_cast<const uint4*>(a.q);
#pragma unroll
  for (int h = 0; h < kQueries; ++h) {
    query[h] = eight_of(q[(place.row + h) * kLanes + lane]);
    running[h].most = -INFINITY;
    running[h].sum = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      query[h].v[i] *= 0.08838834764831845f;  // 1/sqrt(128)
      running[h].out.v[i] = 0;
    }
  }
}

/// Folds one token into a query's softmax. The whole warp takes part in the sum, `valid` lanes in
/// the rest.
__device__ __forceinline__ void fold(Running& r, const Eight& query, const Eight& key,
                                     const Eight& value, bool valid) {
  float score = 0;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) score += query.v[i] * key.v[i];
  score = sum_of_half_warp(score);
  if (!valid) return;
  const float most = fmaxf(r.most, score);
  const float rescale = __expf(r.most - most), weight = __expf(score - most);
  r.most = most;
  r.sum = r.sum * rescale + weight;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) r.out.v[i] = r.out.v[i] * rescale + weight * value.v[i];
}

/// What the half-warps of a block have of one query, and the thread's dimension of their sum.
struct Joined {
  float most, sum, value;
};

__device__ __forceinline__ Joined join_half_warps(const Running& mine, int lane, int group) {
  __shared__ float most[kGroups], sums[kGroups];
  __shared__ float out[kGroups][kHeadDim];
  __syncthreads();  // of an earlier query
  if (lane == 0) {
    most[group] = mine.most;
    sums[group] = mine.sum;
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) out[group][lane * kPerLane + i] = mine.out.v[i];
  __syncthreads();
  Joined all{-INFINITY, 0, 0};
#pragma unroll
  for (int g = 0; g < kGroups; ++g) all.most = fmaxf(all.most, most[g]);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const float weight = most[g] == -INFINITY ? 0 : __expf(most[g] - all.most);
    all.sum += weight * sums[g];
    all.value += weight * out[g][threadIdx.x];
  }
  return all;
}

/// Into the output where the context is not split, else for join_kernel.
__device__ __forceinline__ void store(const DecodeArguments& a, std::int64_t row, int split,
                                      const Joined& all) {
  if (a.splits == 1) {
    static_cast<__nv_bfloat16*>(a.out)[row * kHeadDim + threadIdx.x] =
        __float2bfloat16(all.value / all.sum);
    return;
  }
  const std::int64_t part = row * a.splits + split;
  a.partial[part * kHeadDim + threadIdx.x] = all.value;
  if (threadIdx.x != 0) return;
  a.sums[2 * part] = all.most;
  a.sums[2 * part + 1] = all.sum;
}

template <int kQueries>
__global__ void __launch_bounds__(32 * kWarps) decode_kernel(DecodeArguments a) {
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  Place place{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
              static_cast<int>(blockIdx.z), 0};
  place.row = static_cast<std::int64_t>(place.sequence) * a.heads + place.kv_head * kQueries;
  const int per_split = tokens_per_split(a.context, a.splits);
  const int first = place.split * per_split, last = min(first + per_split, a.context);
  const auto* keys = static_cast<const uint4*>(a.k);
  const auto* values = static_cast<const uint4*>(a.v);
  const std::int32_t* table =
      a.table + static_cast<std::int64_t>(place.sequence) * a.blocks_per_sequence;
  Eight query[kQueries];
  Running running[kQueries];
  start(a, place, lane, query, running);
  // All half-warps walk the same number of steps: the shuffles take the whole warp.
  for (int step = first; step < last; step += kGroups) {
    const int token = step + group;
    const bool valid = token < last;
    const std::int64_t vector =
        paged_row(table, valid ? token : first, a.block_size, a.kv_heads, place.kv_head) * kLanes +
        lane;
    const Eight key = eight_of(keys[vector]);
    const Eight value = eight_of(values[vector]);
#pragma unroll
    for (int h = 0; h < kQueries; ++h) fold(running[h], query[h], key, value, valid);
  }
#pragma unroll
  for (int h = 0; h < kQueries; ++h) {
    store(a, place.row + h, place.split, join_half_warps(running[h], lane, group));
  }
}
static_assert(32 * kWarps == kHeadDim, "a thread joins one dimension");

/// A block a row: joins its splits.
__global__ void __launch_bounds__(kHeadDim) join_kernel(DecodeArguments a) {
  const std::int64_t row = blockIdx.x;
  float all = -INFINITY, sum = 0, value = 0;
  for (int s = 0; s < a.splits; ++s) all = fmaxf(all, a.sums[2 * (row * a.splits + s)]);
  for (int s = 0; s < a.splits; ++s) {
    const std::int64_t part = row * a.splits + s;
    const float most = a.sums[2 * part];
    const float weight = most == -INFINITY ? 0 : __expf(most - all);
    sum += weight * a.sums[2 * part + 1];
    value += weight * a.partial[part * kHeadDim + threadIdx.x];
  }
  static_cast<__nv_bfloat16*>(a.out)[row * kHeadDim + threadIdx.x] = __float2bfloat16(value / sum);
}

template <int kQueries>
void launch(const DecodeArguments& a, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(a.splits), static_cast<unsigned>(a.kv_heads),
                  static_cast<unsigned>(a.batch));
  decode_kernel<kQueries><<<grid, 32 * kWarps, 0, stream>>>(a);
  if (a.splits > 1) {
    join_kernel<<<static_cast<unsigned>(a.batch * a.heads), kHeadDim, 0, stream>>>(a);
  }
}

}  // namespace

void launch_decode(const DecodeArguments& a, cudaStream_t stream) {
  switch (a.heads / a.kv_heads) {
    case 1:
      return launch<1>(a, stream);
    case 4:
      return launch<4>(a, stream);
    case 8:
      return launch<8>(a, stream);
    default:
      throw std::logic_error("decode attention is built for 1, 4 and 8 query heads a KV head");
  }
}

}  // namespace servesim::calibrate::cuda
