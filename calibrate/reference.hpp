/// What each kernel must compute, one element at a time, in double precision: slow and plain.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel_case.hpp"

namespace servesim::calibrate {

/// A 16-bit activation as an 8-bit GEMM sees it: fp8 e4m3 of it, or the integer nearest to
/// kInt8Scale times it; nothing changes for other types.
double quantised(DType type, double value);
constexpr double kInt8Scale = 63.5;

/// sum over k of a[row, k] * b[column, k], activations quantised as `b.type` asks, and the root
/// of the sum of squares of its terms, which errors are measured against.
struct Dot {
  double value = 0;
  double norm = 0;
};
Dot reference_dot(const Operand& a, const Operand& b, std::int64_t k, std::int64_t row,
                  std::int64_t column);

/// Row `n` of a weight-only GEMV with bf16 activations x (fp16 with fp16 weights); `scales` has one
/// a row for int8, one a group of kInt4Group for int4, and is unused else.
Dot reference_gemv(const Operand& weights, const Operand& x, const Operand& scales, std::int64_t k,
                   std::int64_t row);

/// Where K and V of decode attention stand: [block][token][kv_head][head_dim], and the blocks of
/// each sequence.
struct PagedKv {
  Operand k, v;
  const std::vector<std::int32_t>* table = nullptr;  ///< batch x kv_blocks_per_sequence
};
/// The output of one sequence's query head: head_dim values.
std::vector<double> reference_decode(const Case& c, const Operand& q, const PagedKv& kv,
                                     std::int64_t sequence, std::int64_t head);

/// Causal attention of prompt `prompt`'s token `token`; q, k and v are [prompt][token][head][dim].
std::vector<double> reference_prefill(const Case& c, const Operand& q, const Operand& k,
                                      const Operand& v, std::int64_t prompt, std::int64_t token,
                                      std::int64_t head);

/// norm(x + residual) * weight of a row, eps 1e-5.
std::vector<double> reference_rms_norm(const Operand& x, const Operand& residual,
                                       const Operand& weight, std::int64_t n, std::int64_t row);

/// A head of a token after the rotary embedding at position `token`: halves rotated as GPT-NeoX
/// does, base 10000.
std::vector<double> reference_rope(const Operand& x, std::int64_t head_dim, std::int64_t heads,
                                   std::int64_t token, std::int64_t head);
double rope_angle(std::int64_t token, std::int64_t pair, std::int64_t head_dim);

/// silu(gate) * up of element `column` of a row that holds n gates, then n ups.
double reference_silu_mul(const Operand& x, std::int64_t n, std::int64_t row, std::int64_t column);

/// Logits are kLogitScale times the arena's values, so that probabilities spread.
constexpr double kLogitScale = 4;
std::vector<double> reference_softmax(const Operand& logits, std::int64_t n, std::int64_t row);

/// The token drawn from a row: of the kTopK largest logits the shortest prefix whose probability
/// reaches kTopP; of these the one with the largest p/E, E exponential from `noise_seed`.
std::int64_t reference_token(const Operand& logits, std::int64_t n, std::int64_t row,
                             std::uint64_t noise_seed);

}  // namespace servesim::calibrate
