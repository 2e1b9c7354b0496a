// Bandwidth, GEMM and GEMV on the cores.
#include "cpu/cpu_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(SERVESIM_OPENBLAS)
#include <cblas.h>
#endif

#include "cpu/vectors.hpp"
#include "kernel_case.hpp"
#include "patterns.hpp"

namespace servesim::calibrate::cpu {

std::string missing_instructions() {
#if defined(__AVX512F__) && defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512f")) return "AVX-512";
#endif
#if defined(__AVX2__) && defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) return "AVX2";
#endif
#if defined(__FMA__) && defined(__x86_64__)
  if (!__builtin_cpu_supports("fma")) return "FMA";
#endif
  return {};
}

const char* instruction_set() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#else
  return "baseline";
#endif
}

std::uint64_t read(const void* from, std::int64_t bytes) {
  const auto* words = static_cast<const std::uint32_t*>(from);
  const std::int64_t count = bytes / 4;
  Words sums[4] = {};
  for (std::int64_t i = 0; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) sums[j] += load<Words>(words + i + j * kLanes);
  }
  const Words sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  std::uint64_t total = 0;
  for (int i = 0; i < kLanes; ++i) total += sum[i];
  return total;
}

void write(void* to, std::int64_t bytes, float value) {
  auto* floats = static_cast<float*>(to);
  const Floats v = all_lanes(value);
  for (std::int64_t i = 0; i + kLanes <= bytes / 4; i += kLanes) store(floats + i, v);
}

void copy(void* to, const void* from, std::int64_t bytes) {
  const auto* source = static_cast<const float*>(from);
  auto* target = static_cast<float*>(to);
  for (std::int64_t i = 0; i + kLanes <= bytes / 4; i += kLanes) {
    store(target + i, load<Floats>(source + i));
  }
}

void triad(float* a, const float* b, const float* c, std::int64_t count) {
  for (std::int64_t i = 0; i + kLanes <= count; i += kLanes) {
    store(a + i, load<Floats>(b + i) + 3.0f * load<Floats>(c + i));
  }
}

namespace {
constexpr int kChains = 12;  ///< latency 4 or 5, two units: 10 chains keep them busy
constexpr float kChainFactor = 0.999f;
}  // namespace

float peak_fma(std::int64_t fmas) {
  Floats sums[kChains];
  for (int j = 0; j < kChains; ++j) sums[j] = all_lanes(0.5f + static_cast<float>(j));
  const Floats factor = all_lanes(kChainFactor), term = all_lanes(1 - kChainFactor);
  for (std::int64_t i = 0; i < fmas; i += kChains * kLanes) {
    for (int j = 0; j < kChains; ++j) {
      sums[j] = sums[j] * factor + term;
#if defined(__GNUC__) && defined(__x86_64__)
      asm volatile("" : "+x"(sums[j]));  // each step is done, none folded into the next
#endif
    }
  }
  float total = 0;
  for (const Floats& sum : sums) total += sum_of(sum);
  return total / (kChains * kLanes);
}

double peak_fma_result(std::int64_t fmas) {
  constexpr std::int64_t kStep = kChains * kLanes;
  constexpr double kFirstMean = 0.5 + 0.5 * (kChains - 1);
  const double steps = static_cast<double>((fmas + kStep - 1) / kStep);
  return 1 + (kFirstMean - 1) * std::pow(static_cast<double>(kChainFactor), steps);
}

namespace {

#if defined(__AVX512F__)
constexpr int kRowTile = 6;  // 24 sums, 4 weights and an activation in 32 registers
#else
constexpr int kRowTile = 2;  // 8 sums, 4 weights and an activation in 16
#endif
constexpr int kColumnTile = 4;
constexpr std::int64_t kDepth = 512;  ///< of a block along k: activations of 256 rows fit in L2

/// sums[i][j] += a[i] . w[j] over `depth` values.
template <int Rows, class Weight, class LoadWeight>
void dot_tile(const float* a, std::int64_t a_stride, const Weight* const* w, std::int64_t depth,
              float (*sums)[kColumnTile], const LoadWeight& load_weight) {
  Floats partial[Rows][kColumnTile] = {};
  for (std::int64_t i = 0; i < depth; i += kLanes) {
    Floats columns[kColumnTile];
    for (int j = 0; j < kColumnTile; ++j) columns[j] = load_weight(w[j] + i);
    for (int r = 0; r < Rows; ++r) {
      const Floats x = load<Floats>(a + r * a_stride + i);
      for (int j = 0; j < kColumnTile; ++j) partial[r][j] += x * columns[j];
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < kColumnTile; ++j) sums[r][j] += sum_of(partial[r][j]);
  }
}

template <class Weight, class LoadWeight>
void dot_tile(std::int64_t rows, const float* a, std::int64_t a_stride, const Weight* const* w,
              std::int64_t depth, float (*sums)[kColumnTile], const LoadWeight& load_weight) {
  switch (rows) {
    case 1:
      return dot_tile<1>(a, a_stride, w, depth, sums, load_weight);
    case 2:
      return dot_tile<2>(a, a_stride, w, depth, sums, load_weight);
#if defined(__AVX512F__)
    case 3:
      return dot_tile<3>(a, a_stride, w, depth, sums, load_weight);
    case 4:
      return dot_tile<4>(a, a_stride, w, depth, sums, load_weight);
    case 5:
      return dot_tile<5>(a, a_stride, w, depth, sums, load_weight);
    case 6:
      return dot_tile<6>(a, a_stride, w, depth, sums, load_weight);
#endif
    default:
      return;
  }
}

/// All rows against four columns and one block of k.
void gemm_block(const Gemm& g, const std::uint16_t* const* w, std::int64_t depth, const float* a,
                float (*sums)[kColumnTile]) {
  if (g.m <= kRowTile) {
    dot_tile(g.m, a, g.k, w, depth, sums, load_bf16);
    return;
  }
  alignas(64) float wide[kColumnTile][kDepth];
  const float* columns[kColumnTile];
  for (int j = 0; j < kColumnTile; ++j) {
    bf16_to_floats(w[j], wide[j], depth);
    columns[j] = wide[j];
  }
  const auto as_is = [](const float* from) { return load<Floats>(from); };
  for (std::int64_t row = 0; row < g.m; row += kRowTile) {
    dot_tile(std::min<std::int64_t>(kRowTile, g.m - row), a + row * g.k, g.k, columns, depth,
             sums + row, as_is);
  }
}

}  // namespace

void bf16_to_floats(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(to + i, load_bf16(from + i));
}

void gemm(const Gemm& g, std::int64_t begin, std::int64_t end) {
  const std::int64_t depth = g.m <= kRowTile ? g.k : kDepth;
  const std::int64_t columns = end - begin;
  // Sums of a strip of columns stay while k is walked block by block.
  constexpr std::int64_t kStrip = 64;
  std::vector<float> sums(static_cast<std::size_t>(std::min(kStrip, columns) * g.m));
  for (std::int64_t strip = begin; strip < end; strip += kStrip) {
    const std::int64_t last = std::min(end, strip + kStrip);
    std::fill(sums.begin(), sums.end(), 0.0f);
    const auto tile = [&](std::int64_t column) {
      return reinterpret_cast<float(*)[kColumnTile]>(sums.data() + (column - strip) * g.m);
    };
    for (std::int64_t at = 0; at < g.k; at += depth) {
      for (std::int64_t column = strip; column < last; column += kColumnTile) {
        const std::uint16_t* w[kColumnTile];
        for (int j = 0; j < kColumnTile; ++j) w[j] = g.weights + (column + j) * g.k + at;
        gemm_block(g, w, std::min(depth, g.k - at), g.a + at, tile(column));
      }
    }
    for (std::int64_t column = strip; column < last; column += kColumnTile) {
      for (std::int64_t row = 0; row < g.m; ++row) {
        for (int j = 0; j < kColumnTile; ++j) {
          g.out[row * g.n + column + j] = to_bf16(tile(column)[row][j]);
        }
      }
    }
  }
}

#if defined(SERVESIM_OPENBLAS)
bool has_openblas() {
  return true;
}
void gemm_openblas(const Gemm& g, std::int64_t begin, std::int64_t end) {
  const std::int64_t columns = end - begin;
  thread_local std::vector<float> panel, sums;
  panel.resize(static_cast<std::size_t>(columns * g.k));
  sums.resize(static_cast<std::size_t>(columns * g.m));
  bf16_to_floats(g.weights + begin * g.k, panel.data(), columns * g.k);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(g.m),
              static_cast<int>(columns), static_cast<int>(g.k), 1.0f, g.a, static_cast<int>(g.k),
              panel.data(), static_cast<int>(g.k), 0.0f, sums.data(), static_cast<int>(columns));
  for (std::int64_t row = 0; row < g.m; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      g.out[row * g.n + begin + column] =
          to_bf16(sums[static_cast<std::size_t>(row * columns + column)]);
    }
  }
}
#else
bool has_openblas() {
  return false;
}
void gemm_openblas(const Gemm& g, std::int64_t begin, std::int64_t end) {
  gemm(g, begin, end);
}
#endif

void gemv_fp16(const std::uint16_t* weights, const float* x, std::uint16_t* out, std::int64_t k,
               std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; row += kColumnTile) {
    const std::uint16_t* w[kColumnTile];
    for (int j = 0; j < kColumnTile; ++j) w[j] = weights + (row + j) * k;
    float sums[1][kColumnTile] = {};
    dot_tile<1>(x, k, w, k, sums, load_fp16);
    for (int j = 0; j < kColumnTile; ++j) out[row + j] = to_bf16(sums[0][j]);
  }
}

void gemv_int8(const std::int8_t* weights, const std::uint16_t* scales, const float* x,
               std::uint16_t* out, std::int64_t k, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; row += kColumnTile) {
    const std::int8_t* w[kColumnTile];
    for (int j = 0; j < kColumnTile; ++j) w[j] = weights + (row + j) * k;
    float sums[1][kColumnTile] = {};
    dot_tile<1>(x, k, w, k, sums, load_int8);
    for (int j = 0; j < kColumnTile; ++j) {
      out[row + j] = to_bf16(sums[0][j] * from_bf16(scales[row + j]));
    }
  }
}

void gemv_int4(const std::uint8_t* weights, const std::uint16_t* scales, const float* x,
               std::uint16_t* out, std::int64_t k, std::int64_t begin, std::int64_t end) {
  const float* even = x;
  const float* odd = x + k / 2;
  const std::int64_t groups = k / kInt4Group;
  constexpr std::int64_t kBytes = kInt4Group / 2;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::uint8_t* w = weights + row * (k / 2);
    Floats sum = {};
    for (std::int64_t group = 0; group < groups; ++group) {
      Floats part = {};
      for (std::int64_t i = group * kBytes; i < (group + 1) * kBytes; i += kLanes) {
        const Integers both = __builtin_convertvector(load<Bytes>(w + i), Integers);
        part += __builtin_convertvector((both & 15) - 8, Floats) * load<Floats>(even + i);
        part += __builtin_convertvector((both >> 4) - 8, Floats) * load<Floats>(odd + i);
      }
      sum += part * from_bf16(scales[row * groups + group]);
    }
    out[row] = to_bf16(sum_of(sum));
  }
}

}  // namespace servesim::calibrate::cpu
