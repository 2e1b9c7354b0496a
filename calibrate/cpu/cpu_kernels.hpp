/// Kernels of the CPU backend: one thread's part of each. Built for the machine that compiles them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace servesim::calibrate::cpu {

/// Whether this machine runs what the kernels were built for, else what it lacks.
std::string missing_instructions();
/// "AVX-512", "AVX2" or "baseline".
const char* instruction_set();

std::uint64_t read(const void* from, std::int64_t bytes);
void write(void* to, std::int64_t bytes, float value);
void copy(void* to, const void* from, std::int64_t bytes);
/// a = b + 3 c over floats.
void triad(float* a, const float* b, const float* c, std::int64_t count);
/// `fmas` multiply-adds in registers, in chains that each go towards 1; returns their mean.
float peak_fma(std::int64_t fmas);
/// What that mean is, but for rounding.
double peak_fma_result(std::int64_t fmas);

/// Columns [begin, end) of out[m][n] = a[m][k] weights[n][k]^T: bf16 weights, activations as
/// floats. Blocked over k; weights are converted as they are read. `out` gets bf16.
struct Gemm {
  const float* a = nullptr;
  const std::uint16_t* weights = nullptr;
  std::uint16_t* out = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
};
void gemm(const Gemm& g, std::int64_t begin, std::int64_t end);
/// The same through OpenBLAS, one panel of columns at a time. Only in builds that have it.
bool has_openblas();
void gemm_openblas(const Gemm& g, std::int64_t begin, std::int64_t end);

/// out[i] for rows [begin, end) of fp16, int8 and int4 weights; x as floats, for int4 its even
/// elements before its odd ones. Scales are bf16.
void gemv_fp16(const std::uint16_t* weights, const float* x, std::uint16_t* out, std::int64_t k,
               std::int64_t begin, std::int64_t end);
void gemv_int8(const std::int8_t* weights, const std::uint16_t* scales, const float* x,
               std::uint16_t* out, std::int64_t k, std::int64_t begin, std::int64_t end);
void gemv_int4(const std::uint8_t* weights, const std::uint16_t* scales, const float* x,
               std::uint16_t* out, std::int64_t k, std::int64_t begin, std::int64_t end);

/// Attention of `queries` rows that share a KV head over `tokens` keys, given as row pointers to
/// head_dim bf16 values: the paged gather and the tiles of a prompt both come to this. Softmax is
/// kept running over tiles of keys. Query i sees the first visible[i] keys.
struct Attention {
  const float* q = nullptr;  ///< queries x head_dim, scaled by 1/sqrt(head_dim)
  int queries = 0;
  std::int64_t head_dim = 0;
  const std::uint16_t* const* k_rows = nullptr;
  const std::uint16_t* const* v_rows = nullptr;
  const std::int64_t* visible = nullptr;  ///< per query, rising
  float* out = nullptr;                   ///< queries x head_dim
};
constexpr int kMostQueries = 32;
constexpr std::int64_t kMostHeadDim = 128;
void attention(const Attention& a);

void bf16_to_floats(const std::uint16_t* from, float* to, std::int64_t count);
void rms_norm(const std::uint16_t* x, std::uint16_t* residual_out, const std::uint16_t* residual,
              const std::uint16_t* weight, std::uint16_t* out, std::int64_t n);
void rope(const std::uint16_t* x, const float* cos_sin, std::uint16_t* out, std::int64_t head_dim);
void silu_mul(const std::uint16_t* x, std::uint16_t* out, std::int64_t n);
void softmax(const float* logits, float* out, std::int64_t n, float scale);
/// See reference_token(). `row` offsets the noise.
std::int64_t sample_token(const float* logits, std::int64_t n, std::int64_t row,
                          std::uint64_t noise_seed, float scale,
                          std::vector<std::int32_t>& scratch);

}  // namespace servesim::calibrate::cpu
