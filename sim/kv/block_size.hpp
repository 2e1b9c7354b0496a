/// Arithmetic with the block size.
#pragma once

#include <bit>
#include <cstdint>

namespace servesim {

/// Tokens per block. Dividing by it is the most frequent operation of a scheduler, and nearly every
/// block size is a power of two, so that is a shift where it can be. All arguments are non-negative
/// but for mod_floor().
class BlockSize {
 public:
  /// REQUIRES: tokens >= 1.
  explicit BlockSize(std::int64_t tokens)
      : tokens_(tokens),
        shift_(std::has_single_bit(static_cast<std::uint64_t>(tokens))
                   ? std::countr_zero(static_cast<std::uint64_t>(tokens))
                   : -1) {}

  std::int64_t tokens() const { return tokens_; }
  /// Full blocks in `n` tokens.
  std::int64_t full(std::int64_t n) const { return shift_ >= 0 ? n >> shift_ : n / tokens_; }
  /// Blocks that `n` tokens need.
  std::int64_t covering(std::int64_t n) const { return full(n + tokens_ - 1); }
  /// n modulo the block size, from 0, for negative n too.
  std::int64_t mod_floor(std::int64_t n) const {
    if (shift_ >= 0) return n & (tokens_ - 1);
    const std::int64_t remainder = n % tokens_;
    return remainder < 0 ? remainder + tokens_ : remainder;
  }

 private:
  std::int64_t tokens_;
  int shift_;
};

}  // namespace servesim
