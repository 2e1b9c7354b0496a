/// Which contents share which tokens.
#include "kv/content_tree.hpp"
#include "kv/session_contents.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

/// A prompt on its way through SessionContents.
struct Content {
  std::vector<PathStep> path;
  std::int64_t session = -1;
};

class Contents {
 public:
  Content open(std::int64_t tokens, std::vector<std::uint64_t> ids, std::int64_t block,
               std::int64_t session = -1) {
    Content content;
    content.session = session;
    contents_.open(tree, {tokens, block, ids, session}, content.path);
    return content;
  }
  void close(Content& content, std::int64_t tokens) {
    contents_.close(tree, content.session, tokens, content.path);
  }
  ContentTree tree;

 private:
  SessionContents contents_;
};

/// Leading tokens that two contents share: as long as their steps name the same nodes.
std::int64_t shared(const Content& a, const Content& b) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < a.path.size() && i < b.path.size(); ++i) {
    if (a.path[i].node != b.path[i].node) break;
    tokens = std::min(a.path[i].end, b.path[i].end);
    if (a.path[i].end != b.path[i].end) break;
  }
  return tokens;
}

}  // namespace

TEST_CASE("equal leading hash ids are equal leading tokens") {
  Contents contents;
  const Content a = contents.open(40, {1, 2, 3}, 16);
  CHECK(shared(a, contents.open(48, {1, 2, 3}, 16)) == 40);
  CHECK(shared(a, contents.open(40, {1, 2, 4}, 16)) == 32);
  CHECK(shared(a, contents.open(40, {2, 1, 3}, 16)) == 0);
}

TEST_CASE("a token id is a token id, whatever the size of the block that states it") {
  Contents contents;
  const Content fine = contents.open(32, {5, 5, 7, 7}, 8);
  const Content coarse = contents.open(32, {5, 7}, 16);
  CHECK(shared(fine, coarse) == 32);
  const Content longer_run = contents.open(24, {5}, 24);
  CHECK(shared(fine, longer_run) == 16);
}

TEST_CASE("tokens past the last hash id belong to their request alone") {
  Contents contents;
  const Content a = contents.open(20, {1}, 16);
  const Content b = contents.open(20, {1}, 16);
  CHECK(shared(a, b) == 16);
  CHECK(a.path.back().end == kOpenEnd);
}

TEST_CASE("a later turn continues what its session has generated") {
  Contents contents;
  Content first = contents.open(20, {1, 2}, 16, 0);
  const auto generated = first.path.back().node;
  contents.close(first, 50);
  // 64 tokens in, of which the first 50 are the last prompt and its output.
  const Content second = contents.open(64, {1, 9, 10, 11}, 16, 0);
  bool found = false;
  for (const PathStep& step : second.path)
    found = found || (step.node == generated && step.end == 50);
  CHECK(found);
}

TEST_CASE("a turn that was compacted shares only the ids it still has in common") {
  Contents contents;
  Content first = contents.open(64, {1, 2, 3, 4}, 16, 0);
  const Content copy = first;
  contents.close(first, 100);
  const Content shorter = contents.open(48, {1, 2, 8}, 16, 0);
  CHECK(shared(copy, shorter) == 32);
}

TEST_CASE("without hash ids a longer prompt continues the session and a shorter one does not") {
  Contents contents;
  Content first = contents.open(30, {}, 0, 3);
  const auto node = first.path.front().node;
  contents.close(first, 40);
  CHECK(contents.open(60, {}, 0, 3).path.front().node == node);
  CHECK(contents.open(39, {}, 0, 3).path.front().node != node);
}

TEST_CASE("contents that nobody needs any more are forgotten") {
  Contents contents;
  for (int i = 0; i < 1000; ++i) {
    Content content = contents.open(64, {static_cast<std::uint64_t>(i), 2, 3, 4}, 16);
    contents.close(content, 80);
  }
  CHECK(contents.tree.live_nodes() == 0);
}
