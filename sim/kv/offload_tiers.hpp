/// Memory below HBM that keeps evicted prefix blocks: CPU memory, NVMe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/time.hpp"
#include "kv/block_pool.hpp"
#include "kv/offload_counters.hpp"

namespace servesim {

/// How often and when a stored range was touched, in the tier's own count of events.
struct ExtentUse {
  std::int64_t stored = 0;
  std::int64_t last_used = 0;
  std::int64_t uses = 0;
};

/// What goes first: the range with the smallest key. A new order is one function.
using EvictionOrder = std::pair<std::int64_t, std::int64_t> (*)(const ExtentUse&);

inline std::pair<std::int64_t, std::int64_t> evict_lru(const ExtentUse& use) {
  return {use.last_used, 0};
}
inline std::pair<std::int64_t, std::int64_t> evict_lfu(const ExtentUse& use) {
  return {use.uses, use.last_used};
}
inline std::pair<std::int64_t, std::int64_t> evict_fifo(const ExtentUse& use) {
  return {use.stored, 0};
}

/// One tier. Times are of one KV block, over all GPUs of the engine.
struct TierSpec {
  std::string name;
  std::int64_t blocks = 0;
  double read_s = 0;   ///< per block, to HBM
  double write_s = 0;  ///< per block, from the tier above; bounds the write-back queue
  bool operator==(const TierSpec&) const = default;
};

struct OffloadConfig {
  std::vector<TierSpec> tiers;  ///< fastest first
  EvictionOrder order = evict_lru;
};

/// What the tiers hold of a content right after what HBM holds.
struct OffloadMatch {
  struct Part {
    std::size_t tier;
    std::int64_t extent;
  };
  std::vector<Part> parts;
  std::int64_t blocks = 0;
  double load_s = 0;
};

/// Ranges of blocks of one content each, in tiers that overflow into the next. What is evicted from
/// HBM is written to the first tier; what a tier evicts goes to the next, if there is one. Writes
/// queue up behind each other at the tier's rate, and when the queue is longer than a second they
/// are dropped: the cache must not fall behind without end. A range can be loaded once it is
/// written, and stays in its tier.
class OffloadTiers final : public EvictionListener {
 public:
  /// Counts in `counters`. Both must outlive the tiers.
  OffloadTiers(const OffloadConfig& config, ContentTree& contents, OffloadCounters& counters);
  ~OffloadTiers() override = default;
  OffloadTiers(const OffloadTiers&) = delete;
  OffloadTiers& operator=(const OffloadTiers&) = delete;

  /// The time of what happens next.
  void set_now(SimTime now) { now_ = now; }

  void on_evicted(NodeId node, std::int64_t begin, std::int64_t end) override;

  /// The longest run of stored blocks of `path` that starts at block `from`, up to `limit`. Changes
  /// nothing.
  void match(const std::vector<PathStep>& path, BlockSize block_size, std::int64_t from,
             std::int64_t limit, OffloadMatch& match) const;

  /// Counts the parts of `match` as loaded and used.
  void use(const OffloadMatch& match);
  /// Counts `match` as not worth loading.
  void decline(const OffloadMatch& match) { counters_.recomputed_blocks += match.blocks; }

  std::int64_t used(std::size_t tier) const { return tiers_[tier].used; }

  /// Throws std::logic_error when the tiers contradict themselves.
  void check_integrity() const;

 private:
  struct Extent {
    NodeId node = kNoNode;
    std::int64_t begin = 0, end = 0;
    SimTime ready;
    ExtentUse use;
  };
  struct Tier {
    TierSpec spec;
    std::int64_t used = 0;
    SimTime written;  ///< when the write-back queue is empty
    std::map<std::pair<NodeId, std::int64_t>, std::int64_t> by_place;  ///< (node, begin) -> extent
    std::set<std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>> by_order;
  };

  Extent& at(std::int64_t id) { return extents_[static_cast<std::size_t>(id)]; }
  const Extent& at(std::int64_t id) const { return extents_[static_cast<std::size_t>(id)]; }

  void store(std::size_t tier, NodeId node, std::int64_t begin, std::int64_t end);
  void insert(std::size_t tier, NodeId node, std::int64_t begin, std::int64_t end);
  void make_room(std::size_t tier, std::int64_t blocks);
  void touch(std::size_t tier, std::int64_t id);
  std::int64_t find(std::size_t tier, NodeId node, std::int64_t block) const;

  ContentTree& contents_;
  EvictionOrder order_;
  std::vector<Tier> tiers_;
  std::vector<Extent> extents_;
  std::vector<std::int64_t> unused_;
  std::int64_t events_ = 0;
  SimTime now_;
  OffloadCounters& counters_;
};

}  // namespace servesim
