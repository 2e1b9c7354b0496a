/// Gives blocks to sequences and finds cached prefixes.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "support/oracle/block_pool.hpp"
#include "support/oracle/sequence.hpp"
#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// The block tables of all sequences, over one pool.
class KvManager {
 public:
  /// A manager with an empty pool of the configured size.
  explicit KvManager(const Config& config);

  /// Gives a key to every full block of known tokens that has none yet.
  void extend_keys(Sequence& sequence);

  /// The cached leading blocks of a sequence; changes nothing.
  std::vector<BlockId> lookup(const Sequence& sequence) const;

  /// Gives a running sequence the blocks for `tokens` more tokens; false, and no change, when they
  /// are not free.
  bool allocate_running(Sequence& sequence, std::int64_t tokens);

  /// Gives a waiting sequence the cached blocks `hits` and new ones for `tokens` tokens after
  /// them; false, and no change, when the admission rules forbid it.
  bool allocate_admission(Sequence& sequence, std::int64_t tokens, const std::vector<BlockId>& hits,
                          bool any_running);

  /// Makes the full blocks within the first `tokens` tokens findable.
  void register_blocks(Sequence& sequence, std::int64_t tokens);

  /// Gives all blocks back, the last one first.
  void release(Sequence& sequence);

  /// Number of free blocks, the null block excluded.
  std::int64_t free_count() const { return pool_.free_count(); }

  /// Tokens of blocks held, counted once per hold beyond the first.
  std::int64_t shared_reads() const { return pool_.holds_beyond_first() * config_.block_size; }

  /// Throws unless pool and block tables agree.
  void check_integrity(const std::vector<Sequence>& sequences) const;

 private:
  /// A token is its id with owner -1, or a position of the request that owns it.
  using Token = std::pair<std::int64_t, std::uint64_t>;

  Token token_at(const Sequence& sequence, std::int64_t position) const;
  std::int64_t needed(const Sequence& sequence, std::int64_t tokens, std::int64_t hits) const;
  void give(Sequence& sequence, std::int64_t tokens, std::int64_t count,
            const std::vector<BlockId>& hits);

  const Config& config_;
  BlockPool pool_;
  std::map<std::pair<BlockKey, std::vector<Token>>, BlockKey> keys_;  // interned (parent, tokens)
};

}  // namespace servesim::oracle
