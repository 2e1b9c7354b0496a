#include "kv/block_pool.hpp"

#include <algorithm>
#include <stdexcept>

namespace servesim {

BlockPool::BlockPool(std::int64_t usable_blocks, BlockSize block_size, bool caching)
    : usable_(usable_blocks), block_size_(block_size), caching_(caching), blank_(usable_blocks) {}

RunId BlockPool::make_run(NodeId node, std::int64_t begin, std::int64_t end) {
  const Run run{node, 0, begin, end, kNoRun, kNoRun, kNoRun, kNoRun, kNoRun};
  if (node != kNoNode) contents_.hold(node);
  if (!unused_.empty()) {
    const RunId reused = unused_.back();
    unused_.pop_back();
    at(reused) = run;
    return reused;
  }
  runs_.push_back(run);
  return static_cast<RunId>(runs_.size() - 1);
}

void BlockPool::append_to_node(RunId run) {
  RunId& first = contents_.first_run(at(run).node);
  if (first == kNoRun) {
    first = run;
    return;
  }
  RunId last = first;
  while (at(last).younger != kNoRun) last = at(last).younger;
  at(last).younger = run;
  at(run).older = last;
}

void BlockPool::remove(RunId run) {
  const Run& gone = at(run);
  if (gone.node != kNoNode) {
    if (gone.older != kNoRun) at(gone.older).younger = gone.younger;
    if (gone.younger != kNoRun) at(gone.younger).older = gone.older;
    RunId& first = contents_.first_run(gone.node);
    if (first == run) first = gone.younger;
    contents_.drop(gone.node);
  }
  unused_.push_back(run);
}

void BlockPool::split(RunId run, std::int64_t boundary) {
  const RunId upper = make_run(at(run).node, boundary, at(run).end);
  Run& low = at(run);
  Run& high = at(upper);
  low.end = boundary;
  high.refs = low.refs;
  high.next_piece = low.next_piece;
  low.next_piece = upper;
  high.older = run;  // same age: next to each other in the node's list
  high.younger = low.younger;
  if (high.younger != kNoRun) at(high.younger).older = upper;
  low.younger = upper;
  if (low.refs == 0) {  // tails are evicted first, so the upper part stands before the lower one
    free_list_insert_after(low.lru_before, upper);
  }
}

void BlockPool::free_list_insert_after(RunId position, RunId run) {
  const RunId next = position == kNoRun ? lru_head_ : at(position).lru_after;
  at(run).lru_before = position;
  at(run).lru_after = next;
  (position == kNoRun ? lru_head_ : at(position).lru_after) = run;
  (next == kNoRun ? lru_tail_ : at(next).lru_before) = run;
}

void BlockPool::free_list_push(RunId run) {
  free_list_insert_after(lru_tail_, run);
  cached_free_ += at(run).end - at(run).begin;
}

void BlockPool::free_list_remove(RunId run) {
  const Run& r = at(run);
  (r.lru_before == kNoRun ? lru_head_ : at(r.lru_before).lru_after) = r.lru_after;
  (r.lru_after == kNoRun ? lru_tail_ : at(r.lru_after).lru_before) = r.lru_before;
  cached_free_ -= r.end - r.begin;
}

/// take() where fewer than `blocks` are blank: the rest is evicted.
void BlockPool::take_cached(std::int64_t blocks) {
  blocks -= blank_;
  blank_ = 0;
  while (blocks > 0) {
    const RunId head = lru_head_;
    Run& run = at(head);
    const std::int64_t taken = std::min(blocks, run.end - run.begin);
    blocks -= taken;
    if (listener_ != nullptr && run.node != kNoNode) {
      listener_->on_evicted(run.node, run.end - taken, run.end);
    }
    if (taken == run.end - run.begin) {
      free_list_remove(head);
      remove(head);
    } else {
      run.end -= taken;
      cached_free_ -= taken;
    }
  }
}

RunId BlockPool::oldest_run_with(NodeId node, std::int64_t block, std::int64_t& valid_until) const {
  std::int64_t next_older = valid_until;
  for (RunId run = contents_.first_run(node); run != kNoRun; run = at(run).younger) {
    const Run& r = at(run);
    if (r.begin <= block && block < r.end) {
      valid_until = std::min(r.end, next_older);
      return run;
    }
    if (r.begin > block) next_older = std::min(next_older, r.begin);
  }
  return kNoRun;
}

void BlockPool::match_node(NodeId node, std::int64_t begin, std::int64_t end,
                           PrefixMatch& match) const {
  for (std::int64_t block = begin; block < end;) {
    std::int64_t until = end;
    const RunId run = oldest_run_with(node, block, until);
    if (run == kNoRun) return;
    match.runs.push_back({run, block, until});
    match.blocks += until - block;
    if (at(run).refs == 0) match.evictable += until - block;
    block = until;
  }
}

void BlockPool::match(const BlockTable& table, std::int64_t limit, PrefixMatch& match) const {
  match.runs.clear();
  match.blocks = 0;
  match.evictable = 0;
  if (!caching_) return;
  std::int64_t start = 0;
  for (const PathStep& step : table.path) {
    const std::int64_t end = std::min(block_size_.full(step.end), limit);
    if (step.node == kNoNode || block_size_.full(start) >= limit) return;
    match_node(step.node, block_size_.full(start), end, match);
    if (match.blocks < end) return;
    start = step.end;
  }
}

void BlockPool::touch(BlockTable& table, const PrefixMatch& match) {
  table.held = match.runs;
  table.registered = match.blocks;
  for (HeldRun& held : table.held) {
    // An earlier entry may have split the run this one names: its blocks are in a later piece then.
    while (at(held.run).end <= held.begin) held.run = at(held.run).next_piece;
    if (at(held.run).begin < held.begin) {
      split(held.run, held.begin);
      held.run = at(held.run).next_piece;
    }
    if (at(held.run).end > held.end) split(held.run, held.end);
    if (at(held.run).refs == 0) {
      free_list_remove(held.run);
    } else {
      shared_again_ += held.end - held.begin;
      if (at(held.run).refs == 1) shared_blocks_ += held.end - held.begin;
    }
    ++at(held.run).refs;
  }
}

void BlockPool::drop_last_block(PrefixMatch& match) const {
  if (match.blocks == 0) return;
  HeldRun& last = match.runs.back();
  if (at(last.run).refs == 0) --match.evictable;
  --match.blocks;
  if (--last.end == last.begin) match.runs.pop_back();
}

void BlockPool::make_findable(BlockTable& table) {
  if (!caching_ || !table.path.empty()) return;
  contents_.append_private(table.path, kOpenEnd);
  const NodeId node = table.path.back().node;
  contents_.hold(node);
  for (const HeldRun& held : table.held) {
    at(held.run).node = node;
    contents_.hold(node);
    append_to_node(held.run);
  }
}

void BlockPool::register_in_node(BlockTable& table, NodeId node, std::int64_t begin,
                                 std::int64_t end) {
  if (!table.held.empty()) {
    HeldRun& last = table.held.back();
    Run& run = at(last.run);
    const bool alone = run.node == node && run.refs == 1 && run.end == begin &&
                       run.older == kNoRun && run.younger == kNoRun && last.end == begin;
    if (alone) {
      run.end = last.end = end;
      return;
    }
  }
  const RunId run = make_run(node, begin, end);
  at(run).refs = 1;
  append_to_node(run);
  table.held.push_back({run, begin, end});
}

void BlockPool::register_blocks(BlockTable& table, std::int64_t upto) {
  if (!caching_ || upto <= table.registered) return;
  std::int64_t start = 0;
  for (const PathStep& step : table.path) {
    const std::int64_t begin = std::max(table.registered, block_size_.full(start));
    const std::int64_t end = std::min(upto, block_size_.full(step.end));
    if (begin < end) register_in_node(table, step.node, begin, end);
    start = step.end;
  }
  if (table.path.empty()) {  // nobody shares this content: one run without a node
    if (table.held.empty()) {
      const RunId run = make_run(kNoNode, 0, upto);
      at(run).refs = 1;
      table.held.push_back({run, 0, upto});
    } else {
      at(table.held.back().run).end = table.held.back().end = upto;
    }
  }
  table.registered = upto;
}

void BlockPool::release_held(const HeldRun& held) {
  pieces_.clear();
  RunId run = held.run;
  while (true) {
    pieces_.push_back(run);
    if (at(run).end >= held.end) break;
    run = at(run).next_piece;
  }
  for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
    const Run& r = at(*piece);
    if (--at(*piece).refs == 0) {
      free_list_push(*piece);
    } else {
      shared_again_ -= r.end - r.begin;
      if (r.refs == 1) shared_blocks_ -= r.end - r.begin;
    }
  }
}

void BlockPool::release(BlockTable& table, std::int64_t total) {
  release_blank(total - table.registered);
  for (auto held = table.held.rbegin(); held != table.held.rend(); ++held) release_held(*held);
  table.held.clear();
  table.registered = 0;
}

void BlockPool::check_integrity() const {
  std::int64_t listed = 0;
  for (RunId run = lru_head_; run != kNoRun; run = at(run).lru_after) {
    if (at(run).refs != 0) throw std::logic_error("BlockPool: a free run is referenced");
    if (at(run).begin >= at(run).end) throw std::logic_error("BlockPool: an empty run is listed");
    listed += at(run).end - at(run).begin;
  }
  if (listed != cached_free_)
    throw std::logic_error("BlockPool: the free list and its count differ");
  if (blank_ < 0 || free() > usable_)
    throw std::logic_error("BlockPool: more free blocks than blocks");
}

}  // namespace servesim
