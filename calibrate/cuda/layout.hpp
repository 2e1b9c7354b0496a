/// Index arithmetic of the CUDA kernels, apart from them so that it is tested without a GPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "patterns.hpp"

namespace servesim::calibrate::cuda {

/// Operands of mma.sync.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"): where in its
/// matrix a lane's value is. Registers of A and B hold two values, side by side along k.
SERVESIM_HD constexpr int a_row(int lane, int part) {
  return lane / 4 + part % 2 * 8;
}
SERVESIM_HD constexpr int a_column(int lane, int part) {
  return 2 * (lane % 4) + part / 2 * 8;
}
SERVESIM_HD constexpr int b_row(int lane, int part) {
  return 2 * (lane % 4) + part * 8;
}
SERVESIM_HD constexpr int b_column(int lane) {
  return lane / 4;
}
SERVESIM_HD constexpr int c_row(int lane, int i) {
  return lane / 4 + i / 2 * 8;
}
SERVESIM_HD constexpr int c_column(int lane, int i) {
  return 2 * (lane % 4) + i % 2;
}

/// Two neighbouring 16x8 results are one 16x16 operand A: register `part` of it packs values
/// packed_from(part) and the next one of result packed_tile(part).
SERVESIM_HD constexpr int packed_tile(int part) {
  return part / 2;
}
SERVESIM_HD constexpr int packed_from(int part) {
  return 2 * (part % 2);
}

/// Row of a paged KV cache, [block][token of the block][KV head], that holds token `at` of the
/// sequence whose blocks are in `table`.
SERVESIM_HD inline std::int64_t paged_row(const std::int32_t* table, int at, int block_size,
                                          int kv_heads, int kv_head) {
  const std::int64_t block = table[at / block_size];
  return (block * block_size + at % block_size) * kv_heads + kv_head;
}

/// Tokens of a split of the context: all splits but the last have this many.
SERVESIM_HD constexpr int tokens_per_split(int context, int splits) {
  return (context + splits - 1) / splits;
}

/// Splits along the context that fill `sms`; none is without tokens.
inline int decode_splits(int batch, int kv_heads, int context, int sms) {
  constexpr int kBlocksPerSm = 4, kLeastTokens = 128, kMostSplits = 64;
  const int pairs = batch * kv_heads;
  const int wanted = (kBlocksPerSm * sms + pairs - 1) / pairs;
  const int most = std::clamp(context / kLeastTokens, 1, kMostSplits);
  const int per_split = tokens_per_split(context, std::clamp(wanted, 1, most));
  return (context + per_split - 1) / per_split;
}

}  // namespace servesim::calibrate::cuda
