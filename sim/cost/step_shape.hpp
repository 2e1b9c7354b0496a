/// What one engine step does, as far as its cost is concerned: aggregates, never per-token objects.
#pragma once

#include <cstdint>
#include <span>

namespace servesim {

/// A piece of one prompt computed in one step.
struct PrefillChunk {
  std::int64_t tokens;  ///< computed in this step
  std::int64_t
      context;  ///< tokens of the same request computed before (or found in the prefix cache)
};

/// Cached tokens that several sequences read, because they share a prefix.
struct SharedContext {
  std::int64_t reads = 0;   ///< reads of them beyond the first, in tokens
  std::int64_t tokens = 0;  ///< how many distinct ones there are

  bool operator==(const SharedContext&) const = default;
};

/// The aggregates of one step of one engine (all tensor-parallel ranks together).
struct StepShape {
  std::int64_t decode_seqs = 0;  ///< sequences that decode
  std::int64_t decode_tokens =
      0;  ///< their tokens in this step: decode_seqs, more with speculative drafts
  std::int64_t decode_context = 0;  ///< sum over them of tokens computed before this step
  std::span<const PrefillChunk> chunks;
  std::int64_t sampled = 0;  ///< positions that go through the LM head and the sampler
  SharedContext shared{};    ///< what decode_context counts more than once

  std::int64_t tokens() const {
    std::int64_t total = decode_tokens;
    for (const PrefillChunk& chunk : chunks) total += chunk.tokens;
    return total;
  }
};

}  // namespace servesim
