/// Offload tiers against textbook caches of single blocks, and their invariants on ranges.
#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <vector>

#include "kv/offload_tiers.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

/// One block, as a textbook would keep it.
struct CachedBlock {
  std::int64_t stored = 0, used = 0, uses = 0;
};

/// A cache of blocks named by number; scans everything to find a victim.
class TextbookCache {
 public:
  TextbookCache(std::size_t capacity, EvictionOrder order) : capacity_(capacity), order_(order) {}

  void store(int block) {
    ++clock_;
    if (blocks_.contains(block)) {
      blocks_[block].used = clock_;
      ++blocks_[block].uses;
      return;
    }
    if (blocks_.size() == capacity_) {
      const auto key = [this](const auto& entry) {
        return order_({entry.second.stored, entry.second.used, entry.second.uses});
      };
      blocks_.erase(
          std::min_element(blocks_.begin(), blocks_.end(),
                           [&](const auto& a, const auto& b) { return key(a) < key(b); }));
    }
    blocks_[block] = {clock_, clock_, 1};
  }
  bool load(int block) {
    if (!blocks_.contains(block)) return false;
    blocks_[block].used = ++clock_;
    ++blocks_[block].uses;
    return true;
  }

 private:
  std::size_t capacity_;
  EvictionOrder order_;
  std::map<int, CachedBlock> blocks_;
  std::int64_t clock_ = 0;
};

/// Contents of one hash id each, `blocks` blocks of 16 tokens long.
struct Contents {
  Contents(int count, std::int64_t blocks) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = 1000 + static_cast<std::uint64_t>(i);
      paths.emplace_back();
      tree.append(paths.back(), {&id, 1}, 16 * blocks, 0, 16 * blocks);
      tree.hold(paths.back().back().node);
    }
  }
  NodeId node(int i) const { return paths[static_cast<std::size_t>(i)].back().node; }
  ContentTree tree;
  std::vector<std::vector<PathStep>> paths;
};

TierSpec instant(std::int64_t blocks) {
  return {"cpu", blocks, 1e-6, 0};
}

}  // namespace

TEST_CASE("single blocks are evicted as a textbook cache does", "[property]") {
  for (const EvictionOrder order : {evict_lru, evict_lfu, evict_fifo}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      std::mt19937_64 engine(seed);
      const int names = 12;
      const auto capacity = static_cast<std::int64_t>(1 + engine() % 8);
      Contents contents(names, 1);
      OffloadCounters counters;
      OffloadTiers tiers({{instant(capacity)}, order}, contents.tree, counters);
      TextbookCache textbook(static_cast<std::size_t>(capacity), order);
      for (int step = 0; step < 300; ++step) {
        const int name = static_cast<int>(engine() % names);
        if (engine() % 2 == 0) {
          tiers.on_evicted(contents.node(name), 0, 1);
          textbook.store(name);
        } else {
          OffloadMatch match;
          tiers.match(contents.paths[static_cast<std::size_t>(name)], BlockSize(16), 0, 1, match);
          INFO("seed " << seed << " step " << step);
          REQUIRE((match.blocks == 1) == textbook.load(name));
          tiers.use(match);
        }
        tiers.check_integrity();
      }
    }
  }
}

TEST_CASE("ranges: nothing is found that was not stored, and every block is accounted for",
          "[property]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 engine(seed);
    const auto between = [&engine](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
    };
    constexpr int kNames = 6;
    constexpr std::int64_t kBlocks = 20;
    Contents contents(kNames, kBlocks);
    const bool two = seed % 2 == 0;
    std::vector<TierSpec> specs{
        {"cpu", between(1, 30), 1e-3, 1e-2 * static_cast<double>(seed % 3)}};
    if (two) specs.push_back({"nvme", between(1, 60), 5e-3, 0});
    OffloadCounters counters;
    OffloadTiers tiers({specs, evict_lru}, contents.tree, counters);
    std::vector<std::vector<bool>> stored(kNames, std::vector<bool>(kBlocks, false));
    SimTime now;
    for (int step = 0; step < 200; ++step) {
      now += SimTime(between(0, 50'000'000));
      tiers.set_now(now);
      const int name = static_cast<int>(between(0, kNames - 1));
      const std::int64_t begin = between(0, kBlocks - 1);
      const std::int64_t end = between(begin + 1, kBlocks);
      if (between(0, 1) == 0) {
        tiers.on_evicted(contents.node(name), begin, end);
        for (std::int64_t b = begin; b < end; ++b) {
          stored[static_cast<std::size_t>(name)][static_cast<std::size_t>(b)] = true;
        }
      } else {
        OffloadMatch match;
        tiers.match(contents.paths[static_cast<std::size_t>(name)], BlockSize(16), begin, end,
                    match);
        REQUIRE(match.blocks <= end - begin);
        REQUIRE(match.load_s >= 1e-3 * static_cast<double>(match.blocks) * (1 - 1e-9));
        for (std::int64_t b = begin; b < begin + match.blocks; ++b) {
          REQUIRE(stored[static_cast<std::size_t>(name)][static_cast<std::size_t>(b)]);
        }
        tiers.use(match);
      }
      INFO("seed " << seed << " step " << step);
      tiers.check_integrity();
      REQUIRE(tiers.used(0) <= specs[0].blocks);
    }
    const OffloadCounters& c = counters;
    if (!two) CHECK(c.stored_blocks == tiers.used(0) + c.evicted_blocks);
  }
}

TEST_CASE("writes queue up at the tier's rate, and a queue of more than a second drops") {
  Contents contents(40, 1);
  OffloadCounters counters;
  OffloadTiers tiers({{{"cpu", 100, 1e-3, 0.1}}, evict_lru}, contents.tree, counters);
  const auto found = [&](int name) {
    OffloadMatch match;
    tiers.match(contents.paths[static_cast<std::size_t>(name)], BlockSize(16), 0, 1, match);
    return match.blocks == 1;
  };
  for (int i = 0; i < 40; ++i) tiers.on_evicted(contents.node(i), 0, 1);
  CHECK(counters.stored_blocks == 11);  // the eleventh finds a queue of exactly a second
  CHECK(counters.dropped_blocks == 29);
  CHECK_FALSE(found(0));
  tiers.set_now(SimTime(100'000'000));
  CHECK(found(0));
  CHECK_FALSE(found(1));
  tiers.set_now(SimTime(1'100'000'000));
  CHECK(found(10));
  tiers.on_evicted(contents.node(39), 0, 1);
  CHECK(counters.dropped_blocks == 29);
}

TEST_CASE("a full tier overflows into the next, which is slower") {
  Contents contents(3, 4);
  OffloadCounters counters;
  OffloadTiers tiers({{{"cpu", 4, 1e-3, 0}, {"nvme", 6, 1e-2, 0}}, evict_lru}, contents.tree,
                     counters);
  for (int i = 0; i < 3; ++i) tiers.on_evicted(contents.node(i), 0, 4);
  CHECK(tiers.used(0) == 4);
  CHECK(tiers.used(1) == 6);
  CHECK(counters.evicted_blocks == 2);
  OffloadMatch match;
  tiers.match(contents.paths[2], BlockSize(16), 0, 4, match);
  CHECK(match.load_s == Approx(4e-3));
  tiers.match(contents.paths[1], BlockSize(16), 0, 4, match);
  CHECK(match.blocks == 4);
  CHECK(match.load_s == Approx(4e-2));
  tiers.match(contents.paths[0], BlockSize(16), 0, 4, match);
  CHECK(match.blocks == 2);  // tails go first
}
