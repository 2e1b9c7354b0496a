/// Where kernels find their operands in an arena of patterns: alike on cores and on GPUs, so that
/// the checks of both know what a kernel was given.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel_case.hpp"
#include "patterns.hpp"

namespace servesim::calibrate {

/// The same operand, `bytes` further on.
Operand after(Operand from, std::int64_t bytes);

/// Operands of `size` bytes lie side by side in a region of `region_bytes`, from byte `from` on;
/// rotation r takes the r-th, round and round. Throws InputError when not even one fits.
Operand operand_slot(const Operand& region, std::int64_t region_bytes, std::int64_t size,
                     std::int64_t rotation, std::int64_t from = 0);

/// Operands of paged decode attention: queries, then blocks of keys, then as many of values.
struct PagedOperands {
  Operand q, k, v;
  /// The sequences' blocks, one table a rotation: batch x kv_blocks_per_sequence.
  std::vector<std::vector<std::int32_t>> tables;
};

/// Fills the region with blocks and hands them out in random order, so that tables share none until
/// all were used: a rotation reads what the ones before have not brought into a cache. At most
/// kMostTables. REQUIRES: the region holds the queries and a block of K and V.
PagedOperands paged_operands(const Case& c, std::int64_t region_bytes, std::uint64_t seed);
constexpr int kMostTables = 256;  ///< more than calls in a sample

/// Operands of causal attention over whole prompts: [prompt][token][head][dim] each.
struct PromptOperands {
  Operand q, k, v;
};
PromptOperands prompt_operands(const Case& c, const Operand& first);
/// Bytes of all three.
std::int64_t prompt_bytes(const Case& c);

/// Scales of a weight-only GEMV, which stand in the bf16 region from kScalesFrom on, behind the
/// activations.
std::int64_t scale_bytes(const Case& c);
constexpr std::int64_t kScalesFrom = 1 << 20;

/// Cosines, then sines of every token's angles, head_dim a token.
std::vector<float> rope_table(const Case& c);

}  // namespace servesim::calibrate
