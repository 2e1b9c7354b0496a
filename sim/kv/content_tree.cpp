#include "kv/content_tree.hpp"

#include <algorithm>

namespace servesim {

void ContentTree::append(std::vector<PathStep>& path, std::span<const std::uint64_t> hash_ids,
                         std::int64_t hash_block, std::int64_t offset, std::int64_t tokens) {
  std::int64_t position = path.empty() ? 0 : path.back().end;
  for (const std::uint64_t id : hash_ids) {
    const std::int64_t length = std::min(hash_block - offset, tokens);
    offset = 0;
    if (length <= 0) return;
    tokens -= length;
    const NodeId parent = path.empty() ? kNoNode : path.back().node;
    position += length;
    // Equal neighbours are one run of tokens: [5,5] in blocks of 8 is the same text as [5] in
    // blocks of 16.
    const bool continues =
        parent != kNoNode && nodes_[index(parent)].shared && nodes_[index(parent)].key == id;
    if (continues) {
      path.back().end = position;
    } else {
      path.push_back({intern(parent, position - length, id), position});
    }
  }
}

void ContentTree::append_private(std::vector<PathStep>& path, std::int64_t end) {
  const NodeId parent = path.empty() ? kNoNode : path.back().node;
  const std::int64_t start = path.empty() ? 0 : path.back().end;
  path.push_back({create(parent, start, 0, false), end});
}

void ContentTree::drop(NodeId node) {
  while (node != kNoNode && --nodes_[index(node)].refs == 0) {
    const NodeId parent = nodes_[index(node)].parent;
    if (nodes_[index(node)].shared) erase(node);
    unused_.push_back(node);
    node = parent;
  }
}

std::uint64_t ContentTree::hash(NodeId parent, std::int64_t start, std::uint64_t key) {
  std::uint64_t h = key + 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(parent) + 1);
  h ^= static_cast<std::uint64_t>(start) << 32;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ULL;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ULL;
  return h ^ (h >> 32);
}

NodeId ContentTree::create(NodeId parent, std::int64_t start, std::uint64_t key, bool shared) {
  if (parent != kNoNode) hold(parent);
  const Node node{parent, shared, 0, -1, start, key};
  if (!unused_.empty()) {
    const NodeId reused = unused_.back();
    unused_.pop_back();
    nodes_[index(reused)] = node;
    return reused;
  }
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId ContentTree::intern(NodeId parent, std::int64_t start, std::uint64_t key) {
  if (2 * (entries_ + 1) > table_.size()) grow();
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = hash(parent, start, key) & mask;; slot = (slot + 1) & mask) {
    const NodeId found = table_[slot];
    if (found == kNoNode) {
      const NodeId node = create(parent, start, key, true);
      table_[slot] = node;
      ++entries_;
      return node;
    }
    const Node& node = nodes_[index(found)];
    if (node.parent == parent && node.start == start && node.key == key) return found;
  }
}

void ContentTree::insert(NodeId node) {
  const Node& entry = nodes_[index(node)];
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = hash(entry.parent, entry.start, entry.key) & mask;
  while (table_[slot] != kNoNode) slot = (slot + 1) & mask;
  table_[slot] = node;
}

void ContentTree::erase(NodeId node) {
  const Node& entry = nodes_[index(node)];
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = hash(entry.parent, entry.start, entry.key) & mask;
  while (table_[hole] != node) hole = (hole + 1) & mask;
  // Shift back what would no longer be reachable over the hole (Knuth 6.4, algorithm R).
  for (std::size_t next = (hole + 1) & mask; table_[next] != kNoNode; next = (next + 1) & mask) {
    const Node& moved = nodes_[index(table_[next])];
    const std::size_t home = hash(moved.parent, moved.start, moved.key) & mask;
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      table_[hole] = table_[next];
      hole = next;
    }
  }
  table_[hole] = kNoNode;
  --entries_;
}

void ContentTree::grow() {
  const std::vector<NodeId> old = std::move(table_);
  table_.assign(std::max<std::size_t>(64, 2 * old.size()), kNoNode);
  for (const NodeId node : old) {
    if (node != kNoNode) insert(node);
  }
}

}  // namespace servesim
