#include "kv/session_contents.hpp"

#include <algorithm>

namespace servesim {

SessionContents::Turn& SessionContents::last_turn(std::int64_t session) {
  const auto slot = static_cast<std::size_t>(session);
  if (last_turns_.size() <= slot) last_turns_.resize(slot + 1);
  return last_turns_[slot];
}

std::int64_t SessionContents::shared_tokens(const Turn& last, const Prompt& prompt) {
  if (last.tokens == 0 || last.hash_block != prompt.hash_block) return 0;
  if (prompt.hash_block == 0) return prompt.tokens >= last.tokens ? last.tokens : 0;
  const auto differ = std::mismatch(last.hash_ids.begin(), last.hash_ids.end(),
                                    prompt.hash_ids.begin(), prompt.hash_ids.end());
  const std::int64_t common = (differ.first - last.hash_ids.begin()) * prompt.hash_block;
  // The id of the block in which the last prompt ended covers tokens generated since, so only full
  // ones must agree.
  const std::int64_t full = last.prompt / prompt.hash_block * prompt.hash_block;
  if (common >= full && prompt.tokens >= last.tokens) return last.tokens;
  return std::min({common, last.prompt, prompt.tokens});
}

void SessionContents::open(ContentTree& tree, const Prompt& prompt, std::vector<PathStep>& path) {
  path.clear();
  std::int64_t shared = 0;
  if (prompt.session >= 0) {
    const Turn& last = last_turn(prompt.session);
    shared = shared_tokens(last, prompt);
    for (std::int64_t reached = 0; const PathStep& step : last.path) {
      if (reached >= shared) break;
      reached = std::min(step.end, shared);
      path.push_back({step.node, reached});
    }
  }
  if (prompt.hash_block > 0) {
    const std::int64_t skip =
        std::min<std::int64_t>(shared / prompt.hash_block, std::ssize(prompt.hash_ids));
    tree.append(path, prompt.hash_ids.subspan(static_cast<std::size_t>(skip)), prompt.hash_block,
                shared - skip * prompt.hash_block, prompt.tokens - shared);
  }
  if (path.empty() && prompt.session < 0) return;
  tree.append_private(path, kOpenEnd);
  tree.hold(path.back().node);
  if (prompt.session < 0) return;
  Turn turn;
  turn.hash_ids.assign(prompt.hash_ids.begin(), prompt.hash_ids.end());
  turn.hash_block = prompt.hash_block;
  turn.prompt = prompt.tokens;
  open_turns_.emplace(path.back().node, std::move(turn));
}

void SessionContents::close(ContentTree& tree, std::int64_t session, std::int64_t tokens,
                            std::vector<PathStep>& path) {
  if (path.empty()) return;
  if (session < 0) {
    tree.drop(path.back().node);
    path.clear();
    return;
  }
  Turn& last = last_turn(session);
  if (!last.path.empty()) tree.drop(last.path.back().node);
  auto opened = open_turns_.extract(path.back().node);
  last = std::move(opened.mapped());
  last.path.swap(path);
  last.path.back().end = tokens;
  last.tokens = tokens;
}

}  // namespace servesim
