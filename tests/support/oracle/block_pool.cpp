#include "support/oracle/block_pool.hpp"

#include <algorithm>
#include <stdexcept>

namespace servesim::oracle {

void ensure(bool holds, const char* what) {
  if (!holds) {
    throw std::logic_error(what);
  }
}

BlockPool::BlockPool(std::int64_t num_blocks) : blocks_(static_cast<std::size_t>(num_blocks)) {
  at(0).refs = 1;  // the null block belongs to the pool itself
  for (BlockId block = 1; block < num_blocks; ++block) {
    free_.push_back(block);
  }
}

std::int64_t BlockPool::free_count() const {
  return static_cast<std::int64_t>(free_.size());
}

std::int64_t BlockPool::usable_count() const {
  return static_cast<std::int64_t>(blocks_.size()) - 1;
}

std::int64_t BlockPool::ref_count(BlockId block) const {
  return at(block).refs;
}

std::int64_t BlockPool::holds_beyond_first() const {
  std::int64_t holds = 0;
  for (const Block& block : blocks_) {
    holds += std::max<std::int64_t>(block.refs - 1, 0);
  }
  return holds;
}

std::vector<BlockId> BlockPool::take(std::int64_t count) {
  ensure(count <= free_count(), "took more blocks than are free");
  std::vector<BlockId> taken;
  for (std::int64_t i = 0; i < count; ++i) {
    const BlockId block = free_.front();
    free_.pop_front();
    evict_content(block);
    at(block).refs = 1;
    taken.push_back(block);
  }
  return taken;
}

void BlockPool::put(const std::vector<BlockId>& blocks) {
  std::vector<BlockId> without_content;
  for (const BlockId block : blocks) {
    ensure(at(block).refs > 0, "put back a block that nobody holds");
    at(block).refs -= 1;
    if (at(block).refs > 0) {
      continue;
    }
    if (at(block).key.has_value()) {
      free_.push_back(block);
    } else {
      without_content.push_back(block);
    }
  }
  free_.insert(free_.begin(), without_content.begin(), without_content.end());
}

void BlockPool::touch(BlockId block) {
  if (at(block).refs == 0) {
    free_.remove(block);
  }
  at(block).refs += 1;
}

void BlockPool::register_content(BlockId block, BlockKey key) {
  ensure(!at(block).key.has_value(), "registered a block twice");
  ensure(at(block).refs > 0, "registered a free block");
  at(block).key = key;
  by_key_[key].push_back(block);
}

std::optional<BlockId> BlockPool::find(BlockKey key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return std::nullopt;
  }
  return found->second.front();
}

void BlockPool::evict_content(BlockId block) {
  const std::optional<BlockKey> key = at(block).key;
  if (!key.has_value()) {
    return;
  }
  std::vector<BlockId>& same_content = by_key_.at(*key);
  same_content.erase(std::find(same_content.begin(), same_content.end(), block));
  if (same_content.empty()) {
    by_key_.erase(*key);
  }
  at(block).key.reset();
}

void BlockPool::check_integrity(const std::vector<const std::vector<BlockId>*>& tables) const {
  std::vector<std::int64_t> refs(blocks_.size(), 0);
  refs[0] = 1;
  for (const std::vector<BlockId>* table : tables) {
    for (const BlockId block : *table) {
      refs.at(static_cast<std::size_t>(block)) += 1;
    }
  }
  std::vector<std::int64_t> times_free(blocks_.size(), 0);
  for (const BlockId block : free_) {
    times_free.at(static_cast<std::size_t>(block)) += 1;
  }
  std::int64_t used = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    ensure(blocks_[i].refs == refs[i], "a reference count differs from the block tables");
    ensure(times_free[i] == (refs[i] == 0 ? 1 : 0), "the free list differs from the counts");
    used += (i > 0 && refs[i] > 0) ? 1 : 0;
  }
  ensure(used + free_count() == usable_count(), "used + free blocks differ from the total");
  check_content_map();
}

void BlockPool::check_content_map() const {
  std::int64_t listed = 0;
  for (const auto& [key, same_content] : by_key_) {
    ensure(!same_content.empty(), "the content map has an empty entry");
    for (const BlockId block : same_content) {
      ensure(at(block).key == key, "the content map lists a block under another key");
      listed += 1;
    }
  }
  const auto carries_key = [](const Block& block) { return block.key.has_value(); };
  const auto with_content = std::count_if(blocks_.begin(), blocks_.end(), carries_key);
  ensure(listed == with_content, "the content map misses a block");
}

}  // namespace servesim::oracle
