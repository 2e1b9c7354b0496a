#include "kv/offload_tiers.hpp"

#include <algorithm>
#include <stdexcept>

namespace servesim {
namespace {

constexpr std::int64_t kNone = -1;
/// Longest write-back queue.
constexpr SimTime kMostQueued = SimTime(1'000'000'000);

}  // namespace

OffloadTiers::OffloadTiers(const OffloadConfig& config, ContentTree& contents,
                           OffloadCounters& counters)
    : contents_(contents), order_(config.order), counters_(counters) {
  for (const TierSpec& spec : config.tiers) tiers_.push_back({spec, 0, {}, {}, {}});
}

void OffloadTiers::on_evicted(NodeId node, std::int64_t begin, std::int64_t end) {
  store(0, node, begin, end);
}

/// The extent of `tier` that holds `block` of `node`, or kNone.
std::int64_t OffloadTiers::find(std::size_t tier, NodeId node, std::int64_t block) const {
  const auto& places = tiers_[tier].by_place;
  auto place = places.upper_bound({node, block});
  if (place == places.begin()) return kNone;
  --place;
  if (place->first.first != node || at(place->second).end <= block) return kNone;
  return place->second;
}

/// Stores the parts of [begin, end) that `tier` does not hold yet; those it does count as used.
void OffloadTiers::store(std::size_t tier, NodeId node, std::int64_t begin, std::int64_t end) {
  const auto& places = tiers_[tier].by_place;
  while (begin < end) {
    if (const std::int64_t held = find(tier, node, begin); held != kNone) {
      touch(tier, held);
      begin = at(held).end;
      continue;
    }
    const auto next = places.lower_bound({node, begin});
    const bool bounded = next != places.end() && next->first.first == node;
    const std::int64_t gap_end = bounded ? std::min(end, next->first.second) : end;
    insert(tier, node, begin, gap_end);
    begin = gap_end;
  }
}

void OffloadTiers::insert(std::size_t tier, NodeId node, std::int64_t begin, std::int64_t end) {
  Tier& t = tiers_[tier];
  // Of a range larger than the tier its beginning is kept: without it the rest cannot be used.
  end = std::min(end, begin + t.spec.blocks);
  const std::int64_t blocks = end - begin;
  if (std::max(t.written, now_) - now_ > kMostQueued) {
    counters_.dropped_blocks += blocks;
    return;
  }
  contents_.hold(node);  // before room is made: that may drop its last other holder
  make_room(tier, blocks);
  t.written = std::max(t.written, now_) +
              SimTime::from_seconds(t.spec.write_s * static_cast<double>(blocks));
  std::int64_t id = std::ssize(extents_);
  if (unused_.empty()) {
    extents_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  ++events_;
  at(id) = Extent{node, begin, end, t.written, {events_, events_, 1}};
  t.by_place[{node, begin}] = id;
  t.by_order.insert({order_(at(id).use), id});
  t.used += blocks;
  counters_.stored_blocks += blocks;
}

/// Evicts from the tails of the first in line; they go one tier down.
void OffloadTiers::make_room(std::size_t tier, std::int64_t blocks) {
  while (tiers_[tier].spec.blocks - tiers_[tier].used < blocks) {
    Tier& t = tiers_[tier];
    const std::int64_t id = t.by_order.begin()->second;
    const Extent victim = at(id);
    const std::int64_t missing = blocks - (t.spec.blocks - t.used);
    const std::int64_t taken = std::min(missing, victim.end - victim.begin);
    const std::int64_t cut = victim.end - taken;
    t.used -= taken;
    if (cut == victim.begin) {
      t.by_order.erase(t.by_order.begin());
      t.by_place.erase({victim.node, victim.begin});
      unused_.push_back(id);
    } else {
      at(id).end = cut;
    }
    if (tier + 1 < tiers_.size()) {
      store(tier + 1, victim.node, cut, victim.end);
    } else {
      counters_.evicted_blocks += taken;
    }
    if (cut == victim.begin) contents_.drop(victim.node);
  }
}

void OffloadTiers::touch(std::size_t tier, std::int64_t id) {
  Tier& t = tiers_[tier];
  t.by_order.erase({order_(at(id).use), id});
  at(id).use.last_used = ++events_;
  ++at(id).use.uses;
  t.by_order.insert({order_(at(id).use), id});
}

void OffloadTiers::match(const std::vector<PathStep>& path, BlockSize block_size, std::int64_t from,
                         std::int64_t limit, OffloadMatch& match) const {
  match.parts.clear();
  match.blocks = 0;
  match.load_s = 0;
  std::int64_t block = from;
  for (const PathStep& step : path) {
    if (step.node == kNoNode) return;
    const std::int64_t end = std::min(block_size.full(step.end), limit);
    while (block < end) {
      std::size_t tier = 0;
      std::int64_t id = kNone;
      for (; tier < tiers_.size(); ++tier) {
        id = find(tier, step.node, block);
        if (id != kNone && at(id).ready <= now_) break;
        id = kNone;
      }
      if (id == kNone) return;
      const std::int64_t until = std::min(end, at(id).end);
      match.parts.push_back({tier, id});
      match.load_s += tiers_[tier].spec.read_s * static_cast<double>(until - block);
      match.blocks += until - block;
      block = until;
    }
    if (block >= limit) return;
  }
}

void OffloadTiers::use(const OffloadMatch& match) {
  for (const OffloadMatch::Part& part : match.parts) touch(part.tier, part.extent);
  counters_.loaded_blocks += match.blocks;
}

void OffloadTiers::check_integrity() const {
  for (const Tier& tier : tiers_) {
    std::int64_t used = 0;
    const Extent* last = nullptr;
    for (const auto& [place, id] : tier.by_place) {
      const Extent& extent = at(id);
      if (extent.begin >= extent.end) throw std::logic_error("OffloadTiers: an empty extent");
      if (last != nullptr && last->node == extent.node && last->end > extent.begin) {
        throw std::logic_error("OffloadTiers: extents overlap");
      }
      used += extent.end - extent.begin;
      last = &extent;
    }
    if (used != tier.used || used > tier.spec.blocks ||
        tier.by_order.size() != tier.by_place.size()) {
      throw std::logic_error("OffloadTiers: the extents do not add up");
    }
  }
}

}  // namespace servesim
