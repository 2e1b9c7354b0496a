/// The block pool against one of single blocks, on the prompts of the Mooncake conversation trace.
#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <stdexcept>
#include <unordered_map>

#include "benchmarks.hpp"
#include "kv/block_pool.hpp"
#include "kv/session_contents.hpp"
#include "measure.hpp"
#include "workload/trace_source.hpp"

namespace servesim::bench {
namespace {

constexpr std::int64_t kBlock = 16;
constexpr std::int64_t kBlocks = 1'000'000;
constexpr std::size_t kHeld = 64;  ///< requests that hold their blocks at once

struct Prompt {
  std::int64_t tokens;
  std::vector<std::uint64_t> ids;
};

struct Totals {
  std::int64_t hits = 0;
  std::int64_t evicted = 0;
  bool operator==(const Totals&) const = default;
};

/// What one writes first: a hash map from block hash to block, an LRU list, a hash per block of
/// every prompt.
class HashMapPool {
 public:
  Totals run(const std::vector<Prompt>& prompts) {
    std::vector<std::vector<std::int32_t>> held(kHeld);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      release(held[i % kHeld]);
      held[i % kHeld] = take(prompts[i]);
    }
    return totals_;
  }

 private:
  struct Block {
    std::uint64_t hash = 0;
    std::int32_t refs = 0;
    std::list<std::int32_t>::iterator place;
  };

  std::vector<std::int32_t> take(const Prompt& prompt) {
    std::vector<std::int32_t> table;
    std::uint64_t hash = 0;
    bool hitting = true;
    const std::int64_t most_hits = (prompt.tokens - 1) / kBlock;
    const std::int64_t total = (prompt.tokens + kBlock - 1) / kBlock;
    std::vector<std::uint64_t> hashes;
    for (std::int64_t b = 0; b < total; ++b) {
      const std::uint64_t id = prompt.ids[static_cast<std::size_t>(b * kBlock / 512)];
      hash = (hash ^ (id + 0x9e3779b97f4a7c15ULL)) * 0xd6e8feb86659fd93ULL +
             static_cast<std::uint64_t>(b);
      hash ^= hash >> 29;
      const bool full = (b + 1) * kBlock <= prompt.tokens;
      if (hitting && b < most_hits) {
        const auto found = by_hash_.find(hash);
        if (found != by_hash_.end()) {
          Block& block = blocks_[static_cast<std::size_t>(found->second)];
          if (block.refs++ == 0) free_.erase(block.place);
          table.push_back(found->second);
          ++totals_.hits;
          continue;
        }
        hitting = false;
      }
      hashes.push_back(full ? hash : 0);
    }
    for (const std::uint64_t key : hashes) table.push_back(allocate(key));
    return table;
  }

  std::int32_t allocate(std::uint64_t hash) {
    std::int32_t at;
    if (std::ssize(blocks_) < kBlocks && blank_.empty()) {
      at = static_cast<std::int32_t>(blocks_.size());
      blocks_.emplace_back();
    } else if (!blank_.empty()) {
      at = blank_.back();
      blank_.pop_back();
    } else {
      at = free_.front();
      free_.pop_front();
      Block& old = blocks_[static_cast<std::size_t>(at)];
      const auto entry = by_hash_.find(old.hash);
      if (entry != by_hash_.end() && entry->second == at) by_hash_.erase(entry);
      ++totals_.evicted;
    }
    Block& block = blocks_[static_cast<std::size_t>(at)];
    block.hash = hash;
    block.refs = 1;
    if (hash != 0) by_hash_.try_emplace(hash, at);
    return at;
  }

  void release(const std::vector<std::int32_t>& table) {
    for (auto at = table.rbegin(); at != table.rend(); ++at) {
      Block& block = blocks_[static_cast<std::size_t>(*at)];
      if (--block.refs > 0) continue;
      if (block.hash == 0) {
        blank_.push_back(*at);
      } else {
        block.place = free_.insert(free_.end(), *at);
      }
    }
  }

  std::vector<Block> blocks_;
  std::unordered_map<std::uint64_t, std::int32_t> by_hash_;
  std::list<std::int32_t> free_;
  std::vector<std::int32_t> blank_;
  Totals totals_;
};

/// The production pool on the same sequence of requests.
Totals run_block_pool(const std::vector<Prompt>& prompts) {
  BlockPool pool(kBlocks, BlockSize(kBlock), true);
  SessionContents contents;
  std::vector<BlockTable> held(kHeld);
  std::vector<std::int64_t> sizes(kHeld, 0);
  PrefixMatch match;
  Totals totals;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    BlockTable& table = held[i % kHeld];
    std::int64_t& size = sizes[i % kHeld];
    if (size > 0) {
      pool.release(table, size);
      contents.close(pool.contents(), -1, 0, table.path);
    }
    const Prompt& prompt = prompts[i];
    contents.open(pool.contents(), {prompt.tokens, 512, prompt.ids, -1}, table.path);
    pool.match(table, (prompt.tokens - 1) / kBlock, match);
    pool.touch(table, match);
    size = (prompt.tokens + kBlock - 1) / kBlock;
    const std::int64_t fresh = size - match.blocks;
    totals.hits += match.blocks;
    totals.evicted += std::max<std::int64_t>(0, fresh - pool.blank());
    pool.take(fresh);
    pool.register_blocks(table, prompt.tokens / kBlock);
  }
  return totals;
}

}  // namespace

void run_prefix_pool_benchmark(const std::string& shared) {
  const TraceSource source(shared + "/traces/mooncake-fast25/conversation_trace.jsonl");
  std::vector<Prompt> prompts;
  Request request;
  const auto reader = source.open();
  while (reader->next(request)) prompts.push_back({request.input_tokens, request.hash_ids});
  Totals single;
  Totals runs;
  std::vector<Alternative> pools{{"hash map", [&] { single = HashMapPool().run(prompts); }},
                                 {"runs", [&] { runs = run_block_pool(prompts); }}};
  race(pools, 3);
  if (!(single == runs)) {
    throw std::logic_error(fmt::format("the pools disagree: {} and {} hits, {} and {} evictions",
                                       single.hits, runs.hits, single.evicted, runs.evicted));
  }
  print("Prefix pool: Mooncake conversation, 1,000,000 blocks of 16",
        {figure("hit blocks, both", static_cast<double>(runs.hits), ""),
         figure("evicted blocks, both", static_cast<double>(runs.evicted), ""),
         figure("ns per request, runs of blocks",
                pools[1].seconds / static_cast<double>(prompts.size()) * 1e9, "ns"),
         ratio("hash map of single blocks against runs of blocks",
               pools[0].seconds / pools[1].seconds, 30, 0)});
}

}  // namespace servesim::bench
