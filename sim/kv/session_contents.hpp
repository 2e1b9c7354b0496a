/// Content paths of requests, and how the turns of a session continue each other.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/content_tree.hpp"

namespace servesim {

/// Builds the path of each request's content. A later turn of a session repeats what its last turn
/// ended with, the tokens generated then included, as far as its hash ids (or, without ids, its
/// length) say that it continues it.
class SessionContents {
 public:
  /// What identifies a prompt.
  struct Prompt {
    std::int64_t tokens = 0;
    std::int64_t hash_block = 0;  ///< 0: no ids
    std::span<const std::uint64_t> hash_ids;
    std::int64_t session = -1;  ///< -1: none
  };

  /// Sets `path` to the content of `prompt`, to which the request's own tokens can be added. It
  /// stays empty for a content that shares nothing and that nobody can continue.
  void open(ContentTree& tree, const Prompt& prompt, std::vector<PathStep>& path);

  /// Ends the life of a request's content of `tokens` tokens in all; its session's next turn may
  /// continue it.
  void close(ContentTree& tree, std::int64_t session, std::int64_t tokens,
             std::vector<PathStep>& path);

 private:
  struct Turn {
    std::vector<PathStep> path;  ///< its last node is held
    std::vector<std::uint64_t> hash_ids;
    std::int64_t hash_block = 0;
    std::int64_t prompt = 0;
    std::int64_t tokens = 0;  ///< prompt and outputs; 0: no turn has ended
  };

  static std::int64_t shared_tokens(const Turn& last, const Prompt& prompt);
  Turn& last_turn(std::int64_t session);

  std::vector<Turn> last_turns_;  ///< by session
  std::unordered_map<NodeId, Turn>
      open_turns_;  ///< by the last node of the path, which is theirs alone
};

}  // namespace servesim
