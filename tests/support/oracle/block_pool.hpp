/// The pool of KV blocks: reference counts, the free list, and the blocks findable by content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

namespace servesim::oracle {

/// Index of a KV block; 0 is the null block and is never handed out.
using BlockId = std::int64_t;

/// Identifies the content of a full block together with everything before it.
using BlockKey = std::int64_t;

/// Throws std::logic_error with `what` unless `holds`.
void ensure(bool holds, const char* what);

/// Hands out blocks from the head of one free list.
class BlockPool {
 public:
  /// A pool of `num_blocks` blocks, of which num_blocks - 1 can be used.
  explicit BlockPool(std::int64_t num_blocks);

  /// Number of blocks with no reference.
  std::int64_t free_count() const;

  /// Number of blocks that can be handed out at all.
  std::int64_t usable_count() const;

  /// References held on a block.
  std::int64_t ref_count(BlockId block) const;

  /// References beyond each block's first.
  std::int64_t holds_beyond_first() const;

  /// Takes `count` blocks from the head of the free list, evicting the cached content they carry.
  /// REQUIRES: count <= free_count().
  std::vector<BlockId> take(std::int64_t count);

  /// Drops one reference of each block, in this order; blocks without content which become free go
  /// in this order to the front of the free list, those with content to its back.
  void put(const std::vector<BlockId>& blocks);

  /// Adds a reference, taking the block out of the free list if it had none.
  void touch(BlockId block);

  /// Makes a block findable under `key`; several blocks may carry the same key.
  /// REQUIRES: the block carries no key yet and is in use.
  void register_content(BlockId block, BlockKey key);

  /// The block registered longest ago among those which carry `key`.
  std::optional<BlockId> find(BlockKey key) const;

  /// Throws unless counts, free list, content map and the block tables of all owners agree.
  void check_integrity(const std::vector<const std::vector<BlockId>*>& tables) const;

 private:
  struct Block {
    std::int64_t refs = 0;
    std::optional<BlockKey> key;
  };

  Block& at(BlockId block) { return blocks_.at(static_cast<std::size_t>(block)); }
  const Block& at(BlockId block) const { return blocks_.at(static_cast<std::size_t>(block)); }
  void evict_content(BlockId block);
  void check_content_map() const;

  std::vector<Block> blocks_;
  std::list<BlockId> free_;
  std::map<BlockKey, std::vector<BlockId>> by_key_;  // insertion order within a key
};

}  // namespace servesim::oracle
