/// Prefix identity: which prompts share which leading tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace servesim {

using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

/// The end of a content that still grows.
inline constexpr std::int64_t kOpenEnd = std::int64_t{1} << 60;

/// A stretch of tokens of one request's content: everything from the end of the step before up to
/// `end`.
struct PathStep {
  NodeId node;
  std::int64_t end;  ///< tokens from the start of the content
};

/// A trie over token contents, each interned once. Two contents share a node exactly where they
/// agree on every token from the start, so a KV block is identified by the node that holds its last
/// token and its index. A node stands for a run of equal token ids (one hash id of a trace), or for
/// the tokens that belong to one request alone; it never ends by itself: children attach at the
/// offset where a content leaves it.
class ContentTree {
 public:
  /// Appends to `path` the nodes of `tokens` further tokens with the ids `hash_ids[i]`,
  /// `hash_block` tokens each. `offset` tokens of the first id are behind us already. Nodes gain no
  /// reference; see hold().
  void append(std::vector<PathStep>& path, std::span<const std::uint64_t> hash_ids,
              std::int64_t hash_block, std::int64_t offset, std::int64_t tokens);
  /// Appends a node that no other content can find, reaching to `end`.
  void append_private(std::vector<PathStep>& path, std::int64_t end);

  /// A path or run keeps a node (and so its ancestors) alive between hold() and drop().
  void hold(NodeId node) { ++nodes_[index(node)].refs; }
  void drop(NodeId node);

  /// First token of `node`, counted from the start of the content.
  std::int64_t start(NodeId node) const { return nodes_[index(node)].start; }

  /// Head of the list of runs kept in `node`; owned by the block pool.
  std::int32_t& first_run(NodeId node) { return nodes_[index(node)].first_run; }
  std::int32_t first_run(NodeId node) const { return nodes_[index(node)].first_run; }

  std::int64_t live_nodes() const {
    return static_cast<std::int64_t>(nodes_.size() - unused_.size());
  }

 private:
  struct Node {
    NodeId parent;
    bool shared;  ///< findable through the table
    std::int32_t refs;
    std::int32_t first_run;
    std::int64_t start;
    std::uint64_t key;
  };

  static std::size_t index(NodeId node) { return static_cast<std::size_t>(node); }
  static std::uint64_t hash(NodeId parent, std::int64_t start, std::uint64_t key);
  NodeId create(NodeId parent, std::int64_t start, std::uint64_t key, bool shared);
  NodeId intern(NodeId parent, std::int64_t start, std::uint64_t key);
  void insert(NodeId node);
  void erase(NodeId node);
  void grow();

  std::vector<Node> nodes_;
  std::vector<NodeId> unused_;
  std::vector<NodeId> table_;  ///< open addressing, linear probing; a power of two in size
  std::size_t entries_ = 0;
};

}  // namespace servesim
