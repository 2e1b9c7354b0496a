#include "support/oracle/kv_manager.hpp"

#include <algorithm>
#include <cmath>

#include "support/oracle/oracle.hpp"

namespace servesim::oracle {

namespace {

constexpr BlockKey kNoParent = -1;

std::int64_t count_of(const std::vector<BlockId>& blocks) {
  return static_cast<std::int64_t>(blocks.size());
}

}  // namespace

KvManager::KvManager(const Config& config) : config_(config), pool_(config.num_gpu_blocks) {}

KvManager::Token KvManager::token_at(const Sequence& sequence, std::int64_t position) const {
  const Request& request = *sequence.request;
  if (position < request.prompt_len && !request.hash_ids.empty()) {
    return {-1, request.hash_ids.at(static_cast<std::size_t>(position / request.hash_block))};
  }
  return {static_cast<std::int64_t>(sequence.index), static_cast<std::uint64_t>(position)};
}

void KvManager::extend_keys(Sequence& sequence) {
  if (!config_.enable_prefix_caching) {
    return;
  }
  const std::int64_t block_size = config_.block_size;
  const std::int64_t full_blocks = sequence.num_tokens() / block_size;
  while (static_cast<std::int64_t>(sequence.block_keys.size()) < full_blocks) {
    const auto block = static_cast<std::int64_t>(sequence.block_keys.size());
    std::vector<Token> tokens;
    for (std::int64_t i = 0; i < block_size; ++i) {
      tokens.push_back(token_at(sequence, block * block_size + i));
    }
    const BlockKey parent = block == 0 ? kNoParent : sequence.block_keys.back();
    const auto next_key = static_cast<BlockKey>(keys_.size());
    const auto [entry, inserted] = keys_.try_emplace({parent, std::move(tokens)}, next_key);
    sequence.block_keys.push_back(entry->second);
  }
}

std::vector<BlockId> KvManager::lookup(const Sequence& sequence) const {
  std::vector<BlockId> hits;
  if (!config_.enable_prefix_caching) {
    return hits;
  }
  // At least one token must be computed to have something to sample from.
  const std::int64_t most_blocks = (sequence.num_tokens() - 1) / config_.block_size;
  for (std::int64_t i = 0; i < most_blocks; ++i) {
    const auto block = pool_.find(sequence.block_keys.at(static_cast<std::size_t>(i)));
    if (!block.has_value()) {
      break;
    }
    hits.push_back(*block);
  }
  // The drafter needs the hidden states of the last block, which are not cached.
  if (config_.spec_method == SpecMethod::kEagle && !hits.empty()) {
    hits.pop_back();
  }
  return hits;
}

std::int64_t KvManager::needed(const Sequence& sequence, std::int64_t tokens,
                               std::int64_t hits) const {
  return std::max<std::int64_t>(blocks_of(config_, tokens) - hits - count_of(sequence.blocks), 0);
}

bool KvManager::allocate_running(Sequence& sequence, std::int64_t tokens) {
  const std::int64_t limit = config_.max_model_len;
  const std::int64_t computed = std::min(sequence.computed, limit);
  const std::int64_t slots = std::min(computed + tokens + lookahead_tokens(config_), limit);
  const std::int64_t count = needed(sequence, slots, 0);
  if (count > pool_.free_count()) {
    return false;
  }
  give(sequence, computed + tokens, count, {});
  return true;
}

bool KvManager::allocate_admission(Sequence& sequence, std::int64_t tokens,
                                   const std::vector<BlockId>& hits, bool any_running) {
  ensure(sequence.blocks.empty() && sequence.computed == 0, "a waiting sequence holds KV");
  const std::int64_t limit = config_.max_model_len;
  const std::int64_t num_hits = count_of(hits);
  const std::int64_t computed = std::min(num_hits * config_.block_size, limit);

  std::int64_t hits_leaving_free_list = 0;
  for (const BlockId block : hits) {
    hits_leaving_free_list += pool_.ref_count(block) == 0 ? 1 : 0;
  }
  std::int64_t kept_free = 0;
  if (any_running) {
    const double blocks = config_.watermark * static_cast<double>(config_.num_gpu_blocks);
    kept_free = static_cast<std::int64_t>(std::floor(blocks));
  }
  const std::int64_t aside = hits_leaving_free_list + kept_free;

  if (config_.scheduler_reserve_full_isl) {
    const std::int64_t known = std::min(sequence.num_tokens(), limit);
    if (needed(sequence, known, num_hits) + aside > pool_.free_count()) {
      return false;
    }
  }
  const std::int64_t slots = std::min(computed + tokens + lookahead_tokens(config_), limit);
  const std::int64_t count = needed(sequence, slots, num_hits);
  if (count + aside > pool_.free_count()) {
    return false;
  }
  give(sequence, computed + tokens, count, hits);
  return true;
}

void KvManager::give(Sequence& sequence, std::int64_t tokens, std::int64_t count,
                     const std::vector<BlockId>& hits) {
  // Hits first: otherwise one of them could be taken as a new block.
  for (const BlockId block : hits) {
    pool_.touch(block);
    sequence.blocks.push_back(block);
    sequence.num_registered += 1;
  }
  for (const BlockId block : pool_.take(count)) {
    sequence.blocks.push_back(block);
  }
  // Drafts may be rejected, so only known tokens become findable.
  register_blocks(sequence, std::min(tokens, sequence.num_tokens()));
}

void KvManager::register_blocks(Sequence& sequence, std::int64_t tokens) {
  if (!config_.enable_prefix_caching) {
    return;
  }
  while (sequence.num_registered < tokens / config_.block_size) {
    const auto index = static_cast<std::size_t>(sequence.num_registered);
    pool_.register_content(sequence.blocks.at(index), sequence.block_keys.at(index));
    sequence.num_registered += 1;
  }
}

void KvManager::release(Sequence& sequence) {
  pool_.put({sequence.blocks.rbegin(), sequence.blocks.rend()});
  sequence.blocks.clear();
  sequence.num_registered = 0;
}

void KvManager::check_integrity(const std::vector<Sequence>& sequences) const {
  std::vector<const std::vector<BlockId>*> tables;
  for (const Sequence& sequence : sequences) {
    tables.push_back(&sequence.blocks);
    ensure(sequence.num_registered <= count_of(sequence.blocks), "registered blocks not owned");
  }
  pool_.check_integrity(tables);
}

}  // namespace servesim::oracle
