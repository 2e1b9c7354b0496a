/// Layers with a sliding window beside layers without: how they share the blocks of one pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kv/block_size.hpp"

namespace servesim {

/// The layers of a model in groups of equal size. A block of the pool holds block_size tokens of
/// one group; a slot, one token of it. By default all layers are one group that attends to every
/// token.
struct LayerGroups {
  std::int64_t full = 1;      ///< groups whose layers attend to every token
  std::int64_t windowed = 0;  ///< groups whose layers attend to the last `window` tokens
  std::int64_t window = 0;    ///< tokens, the query's own included
  std::int64_t layers = 1;    ///< of the model
  std::int64_t size = 1;      ///< layers of a group; where they do not come out even, padded ones

  /// Blocks of one group in the memory of `blocks` blocks of all layers.
  std::int64_t pool_blocks(std::int64_t blocks) const { return blocks * layers / size; }
  /// The share of one slot in the bytes of a token.
  double slot_share() const { return static_cast<double>(size) / static_cast<double>(layers); }
};

/// vLLM's grouping (kv_cache_utils.py, _get_kv_cache_groups_uniform_page_size): as many layers to a
/// group as there are of the rarer kind, or of the more frequent one where that is less than half
/// again as many; groups that are not filled get padding layers, whose memory is lost.
/// REQUIRES: at least one layer of either kind, window >= 1.
LayerGroups group_layers(std::int64_t full_layers, std::int64_t windowed_layers,
                         std::int64_t window);

/// What a sequence holds of the pool. A windowed group takes blocks like any other until they cover
/// the window wherever it stands; from then on every new block takes the place of the oldest.
class KvDemand {
 public:
  KvDemand(BlockSize block_size, const LayerGroups& groups)
      : block_size_(block_size),
        full_(groups.full),
        windowed_(groups.windowed),
        most_blocks_(groups.windowed == 0 ? 0 : block_size.covering(groups.window - 1) + 1),
        edge_(groups.windowed == 0 ? kNever : most_blocks_ * block_size.tokens()) {}

  /// Blocks of the pool that `tokens` tokens take.
  std::int64_t blocks(std::int64_t tokens) const {
    const std::int64_t covering = block_size_.covering(tokens);
    if (windowed_ == 0) return covering;
    return full_ * covering + windowed_ * std::min(covering, most_blocks_);
  }

  /// Slots of these blocks that hold a token: all but those not yet filled.
  std::int64_t slots(std::int64_t tokens) const {
    if (windowed_ == 0) return tokens;
    return full_ * tokens + windowed_ * std::min(tokens, edge_);
  }

  /// Slots that the next token fills after `tokens` tokens, and blocks that each next block_size of
  /// them take.
  std::int32_t growth(std::int64_t tokens) const {
    return static_cast<std::int32_t>(tokens < edge_ ? full_ + windowed_ : full_);
  }

  /// The number of tokens from which on windowed groups grow no more.
  std::int64_t edge() const { return edge_; }

 private:
  static constexpr std::int64_t kNever = std::int64_t{1} << 60;

  BlockSize block_size_;
  std::int64_t full_;
  std::int64_t windowed_;
  std::int64_t most_blocks_;
  std::int64_t edge_;
};

}  // namespace servesim
