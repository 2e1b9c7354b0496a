/// How large a contiguous region a request gets: one function a rule.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace servesim {

/// Slots to reserve for a sequence that needs `needed` of them now and `last` at its end, where
/// none may ever need more than `longest`. ENSURES: needed <= result. REQUIRES: 1 <= needed <= last
/// <= longest.
using RegionRule = std::int64_t (*)(std::int64_t needed, std::int64_t last, std::int64_t longest);

/// The longest any sequence may become (FasterTransformer, Orca as rebuilt for the vLLM paper,
/// arXiv:2309.06180, "Orca (Max)").
inline std::int64_t region_max(std::int64_t, std::int64_t, std::int64_t longest) {
  return longest;
}

/// The next power of two of what is needed, copied to twice the size when it is full ("Orca (Pow2)"
/// there reserves for the output; here the prompt counts too).
inline std::int64_t region_pow2(std::int64_t needed, std::int64_t, std::int64_t longest) {
  return std::min<std::int64_t>(
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(needed))), longest);
}

/// What it will need in the end, known beforehand: the best that any contiguous scheme could do
/// ("Orca (Oracle)").
inline std::int64_t region_oracle(std::int64_t, std::int64_t last, std::int64_t) {
  return last;
}

}  // namespace servesim
