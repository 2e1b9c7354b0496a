/// The block pool's rules one at a time. tests/property compares whole runs with a pool of single
/// blocks.
#include "kv/block_pool.hpp"
#include "kv/session_contents.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

constexpr std::int64_t kBlock = 16;

/// A pool and the little a scheduler does with it.
struct Pool {
  explicit Pool(std::int64_t blocks) : pool(blocks, BlockSize(kBlock), true) {}

  BlockTable prompt(std::vector<std::uint64_t> ids) {
    BlockTable table;
    contents.open(pool.contents(), {std::ssize(ids) * kBlock, kBlock, ids, -1}, table.path);
    return table;
  }
  std::int64_t hits(const BlockTable& table) {
    pool.match(table, 1000, match);
    return match.blocks;
  }
  /// Takes what is cached, computes and registers the rest of `blocks`.
  void fill(BlockTable& table, std::int64_t blocks) {
    pool.match(table, blocks, match);
    pool.touch(table, match);
    pool.take(blocks - match.blocks);
    pool.register_blocks(table, blocks);
  }
  BlockPool pool;
  SessionContents contents;
  PrefixMatch match;
};

}  // namespace

TEST_CASE(
    "blocks without content go first, cached ones in the order of their release, tails first") {
  Pool p(6);
  BlockTable a = p.prompt({1, 2, 3});
  BlockTable b = p.prompt({4, 5});
  p.fill(a, 3);
  p.fill(b, 2);
  p.pool.release(a, 3);
  p.pool.release(b, 2);
  CHECK(p.pool.free() == 6);
  CHECK(p.pool.blank() == 1);
  p.pool.take(1);  // the blank one
  CHECK(p.hits(a) == 3);
  p.pool.take(1);  // the tail of the older content
  CHECK(p.hits(a) == 2);
  CHECK(p.hits(b) == 2);
  p.pool.take(3);
  CHECK(p.hits(a) == 0);
  CHECK(p.hits(b) == 1);
  p.pool.check_integrity();
}

TEST_CASE("shared blocks count once and stay until the last holder lets go") {
  Pool p(10);
  BlockTable a = p.prompt({1, 2, 3});
  BlockTable b = p.prompt({1, 2, 9});
  p.fill(a, 3);
  CHECK(p.hits(b) == 2);
  CHECK(p.match.evictable == 0);
  p.fill(b, 3);
  CHECK(p.pool.used() == 4);
  CHECK(p.pool.shared_blocks() == 2);
  CHECK(p.pool.shared_again() == 2);
  BlockTable c = p.prompt({1, 7});
  p.fill(c, 2);
  CHECK(p.pool.shared_blocks() == 2);
  CHECK(p.pool.shared_again() == 3);  // the first block has three holders, the second two
  p.pool.release(c, 2);
  p.pool.release(a, 3);
  CHECK(p.pool.shared_blocks() == 0);
  CHECK(p.pool.shared_again() == 0);
  CHECK(p.pool.used() == 3);
  p.pool.release(b, 3);
  CHECK(p.pool.used() == 0);
  CHECK(p.hits(b) == 3);
  CHECK(p.match.evictable == 3);
  p.pool.check_integrity();
}

TEST_CASE("a partial hit splits a run, and the rest keeps its place in the line of eviction") {
  Pool p(5);
  BlockTable a = p.prompt({1, 2, 3, 4});
  p.fill(a, 4);
  p.pool.release(a, 4);
  BlockTable b = p.prompt({1, 2, 7});
  p.fill(b, 3);  // two hits, the blank block
  CHECK(p.pool.free() == 2);
  p.pool.take(1);  // block 3 of `a`, its tail
  BlockTable again = p.prompt({1, 2, 3, 4});
  CHECK(p.hits(again) == 3);
  p.pool.release(b, 3);
  p.pool.check_integrity();
}

TEST_CASE("duplicates are kept apart, and the oldest is found") {
  Pool p(8);
  BlockTable a = p.prompt({1, 2});
  BlockTable b = p.prompt({1, 2});
  p.fill(a, 2);
  p.pool.match(b, 1, p.match);  // as for a prompt whose last block is always computed again
  p.pool.touch(b, p.match);
  p.pool.take(1);
  p.pool.register_blocks(b, 2);
  CHECK(p.pool.used() == 3);
  p.pool.release(a, 2);
  BlockTable c = p.prompt({1, 2});
  CHECK(p.hits(c) == 2);
  CHECK(p.match.evictable ==
        1);  // the oldest copy of the second block is the one that `a` has released
  p.pool.release(b, 2);
  p.pool.check_integrity();
}

TEST_CASE("without caching a count is all there is") {
  BlockPool pool(4, BlockSize(kBlock), false);
  pool.take(3);
  CHECK(pool.free() == 1);
  BlockTable table;
  pool.register_blocks(table, 3);
  pool.release(table, 3);
  CHECK(pool.blank() == 4);
}
