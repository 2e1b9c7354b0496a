/// The paged KV pool of one engine: vLLM's block pool with full-block prefix caching, kept as runs
/// of blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/block_size.hpp"
#include "kv/content_tree.hpp"

namespace servesim {

using RunId = std::int32_t;
inline constexpr RunId kNoRun = -1;

/// A range of block indices of one content, held by a request. The blocks are those of `run` and,
/// where it was split since, of the runs that follow it.
struct HeldRun {
  RunId run;
  std::int64_t begin;  ///< first block index
  std::int64_t end;    ///< one past the last
};

/// What a request holds: its content's path and its registered blocks, in block order.
struct BlockTable {
  std::vector<PathStep> path;  ///< empty: content that nobody shares
  std::vector<HeldRun> held;   ///< hit or registered blocks, [0, registered) in all
  std::int64_t registered = 0;
};

/// The longest cached prefix of a content.
struct PrefixMatch {
  std::vector<HeldRun> runs;
  std::int64_t blocks = 0;     ///< in all of `runs`
  std::int64_t evictable = 0;  ///< of these, on the free list: touching them takes them off
};

/// Hears of content that leaves the pool.
class EvictionListener {
 public:
  virtual ~EvictionListener() = default;
  /// Blocks [begin, end) of `node` are about to be overwritten.
  virtual void on_evicted(NodeId node, std::int64_t begin, std::int64_t end) = 0;
};

/// Blocks are fungible until they carry content, so the free list of the real pool (blocks without
/// a hash at its front, cached ones behind in the order of their release) is a count and a list of
/// cached runs. A run is a range of blocks of one content-tree node that were registered together
/// and share one reference count; it is split only where a partial hit does, and evicted from its
/// tail. Decisions equal those of a pool of single blocks (tests/property compares them). The null
/// block is not counted.
class BlockPool {
 public:
  /// `usable_blocks` excludes the null block.
  BlockPool(std::int64_t usable_blocks, BlockSize block_size, bool caching);

  std::int64_t usable() const { return usable_; }
  std::int64_t free() const { return blank_ + cached_free_; }
  std::int64_t used() const { return usable_ - free(); }
  /// Free blocks that cache nothing: taken before any is evicted.
  std::int64_t blank() const { return blank_; }
  bool caching() const { return caching_; }
  /// Blocks that more than one request holds, and the holds on them beyond the first of each.
  std::int64_t shared_blocks() const { return shared_blocks_; }
  std::int64_t shared_again() const { return shared_again_; }
  ContentTree& contents() { return contents_; }
  /// `listener` may be null and must outlive the pool's use.
  void tell(EvictionListener* listener) { listener_ = listener; }

  /// Takes `blocks` from the head of the free list, evicting what they cached. REQUIRES: blocks <=
  /// free().
  void take(std::int64_t blocks) {
    if (blocks <= blank_) {
      blank_ -= blocks;
    } else {
      take_cached(blocks);
    }
  }

  /// Returns `blocks` that carry no registered content.
  void release_blank(std::int64_t blocks) { blank_ += blocks; }

  /// Longest cached prefix of `table`'s content, at most `limit` blocks. Changes nothing.
  [[gnu::noinline]] void match(const BlockTable& table, std::int64_t limit,
                               PrefixMatch& match) const;

  /// Makes `table` hold the blocks of `match`. REQUIRES: `table` holds nothing, nothing happened
  /// since match().
  [[gnu::noinline]] void touch(BlockTable& table, const PrefixMatch& match);

  /// Registers the blocks [table.registered, upto) that `table`'s request holds, so that they can
  /// be found.
  [[gnu::noinline]] void register_blocks(BlockTable& table, std::int64_t upto);

  /// Gives back all of a request's blocks: `total` of them, of which table.registered are
  /// registered.
  [[gnu::noinline]] void release(BlockTable& table, std::int64_t total);

  /// Takes the last block off `match` (drafters of the EAGLE family recompute it).
  void drop_last_block(PrefixMatch& match) const;

  /// Gives content that nobody shares a path of its own, so that its request finds its blocks
  /// again.
  void make_findable(BlockTable& table);

  /// Throws std::logic_error when the pool contradicts itself.
  void check_integrity() const;

 private:
  struct Run {
    NodeId node;  ///< kNoNode: content that nobody can ask for again
    std::int32_t refs;
    std::int64_t begin, end;
    RunId older, younger;         ///< in the node's list, oldest first
    RunId lru_before, lru_after;  ///< on the free list while refs == 0
    RunId next_piece;             ///< the part split off above `end`
  };

  static std::size_t index(RunId run) { return static_cast<std::size_t>(run); }
  Run& at(RunId run) { return runs_[index(run)]; }
  const Run& at(RunId run) const { return runs_[index(run)]; }

  RunId make_run(NodeId node, std::int64_t begin, std::int64_t end);
  void append_to_node(RunId run);
  void remove(RunId run);
  void split(RunId run, std::int64_t boundary);
  void free_list_push(RunId run);
  void free_list_insert_after(RunId position, RunId run);
  void free_list_remove(RunId run);
  [[gnu::noinline]] void take_cached(std::int64_t blocks);
  void match_node(NodeId node, std::int64_t begin, std::int64_t end, PrefixMatch& match) const;
  RunId oldest_run_with(NodeId node, std::int64_t block, std::int64_t& valid_until) const;
  void register_in_node(BlockTable& table, NodeId node, std::int64_t begin, std::int64_t end);
  void release_held(const HeldRun& held);

  std::int64_t usable_;
  BlockSize block_size_;
  bool caching_;
  std::int64_t blank_;
  std::int64_t cached_free_ = 0;
  EvictionListener* listener_ = nullptr;
  std::int64_t shared_blocks_ = 0;
  std::int64_t shared_again_ = 0;
  ContentTree contents_;
  std::vector<Run> runs_;
  std::vector<RunId> unused_;
  RunId lru_head_ = kNoRun;
  RunId lru_tail_ = kNoRun;
  std::vector<RunId> pieces_;  ///< scratch
};

}  // namespace servesim
