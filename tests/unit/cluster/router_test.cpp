/// Where each router sends requests.
#include "cluster/router.hpp"

#include <set>

#include "list_trace.hpp"
#include "support/catch.hpp"

using namespace servesim;
using testing::timed;

namespace {

std::vector<ReplicaLoad> idle(std::size_t n) {
  return std::vector<ReplicaLoad>(n);
}

/// A prompt of whole hash blocks of 100 tokens.
Request prompt(std::vector<std::uint64_t> ids) {
  Request request = timed(0, static_cast<std::int64_t>(100 * ids.size()), 10);
  request.hash_block = 100;
  request.hash_ids = std::move(ids);
  return request;
}

const std::vector<RouterFactory> kAllRouters{
    make_round_robin,  make_random,         make_least_loaded, make_join_shortest_queue,
    make_power_of_two, make_session_sticky, make_prefix_aware};

}  // namespace

TEST_CASE("no router sends anything to a replica that is down", "[router]") {
  for (const RouterFactory& make : kAllRouters) {
    const auto router = make(1);
    std::vector<ReplicaLoad> loads = idle(4);
    for (int i = 0; i < 40; ++i) {
      loads[1].up = i % 2 == 0;
      loads[3].up = i % 3 == 0;
      loads[0].up = i > 20;
      const std::size_t chosen =
          router->route(timed(i, 10, 10, i % 5 == 0 ? "" : std::to_string(i % 3)), loads);
      REQUIRE(chosen < loads.size());
      CHECK(loads[chosen].up);
    }
    loads = idle(1);
    CHECK(router->route(prompt({1}), loads) == 0);
  }
}

TEST_CASE("round-robin takes each in turn", "[router]") {
  const auto router = make_round_robin(0);
  const auto loads = idle(3);
  for (std::size_t i = 0; i < 9; ++i) CHECK(router->route(timed(0, 1, 1), loads) == i % 3);
}

TEST_CASE("least-loaded counts tokens, join-shortest-queue requests", "[router]") {
  const std::vector<ReplicaLoad> loads{{5, 100, true}, {1, 900, true}, {1, 900, true}};
  CHECK(make_least_loaded(0)->route(timed(0, 1, 1), loads) == 0);
  CHECK(make_join_shortest_queue(0)->route(timed(0, 1, 1), loads) == 1);
}

TEST_CASE("random routers draw evenly, and the same again with the same seed", "[router]") {
  for (const RouterFactory& make : {RouterFactory(make_random), RouterFactory(make_power_of_two)}) {
    const auto router = make(3);
    const auto again = make(3);
    std::vector<int> counts(4);
    for (int i = 0; i < 4000; ++i) {
      const std::size_t chosen = router->route(timed(0, 1, 1), idle(4));
      CHECK(again->route(timed(0, 1, 1), idle(4)) == chosen);
      ++counts[chosen];
    }
    for (const int count : counts) CHECK(std::abs(count - 1000) < 120);
  }
}

TEST_CASE("power-of-two never takes the most loaded of all", "[router]") {
  const auto router = make_power_of_two(0);
  const std::vector<ReplicaLoad> loads{{1, 10, true}, {1, 1000, true}, {1, 20, true}};
  std::set<std::size_t> chosen;
  for (int i = 0; i < 100; ++i) chosen.insert(router->route(timed(0, 1, 1), loads));
  CHECK(chosen == std::set<std::size_t>{0, 2});
}

TEST_CASE("a session stays where it began, until that replica is down", "[router]") {
  const auto router = make_session_sticky(0);
  std::vector<ReplicaLoad> loads{{1, 50, true}, {0, 0, true}, {1, 10, true}};
  CHECK(router->route(timed(0, 1, 1, "a"), loads) == 1);
  loads[1].tokens = 1000;
  CHECK(router->route(timed(0, 1, 1, "a"), loads) == 1);
  CHECK(router->route(timed(0, 1, 1, "b"), loads) == 2);
  loads[1].up = false;
  CHECK(router->route(timed(0, 1, 1, "a"), loads) == 2);
  loads[1].up = true;
  CHECK(router->route(timed(0, 1, 1, "a"), loads) == 2);
}

TEST_CASE("prefix-aware weighs what is cached against the load", "[router]") {
  const auto router = make_prefix_aware(0);
  std::vector<ReplicaLoad> loads = idle(3);
  loads[0].tokens = 5;
  CHECK(router->route(prompt({1, 2, 3}), loads) == 1);
  CHECK(router->route(prompt({1, 2, 9}), loads) == 1);  // 200 tokens are there
  loads[1].tokens = 150;
  CHECK(router->route(prompt({1, 2, 8}), loads) == 1);
  loads[1].tokens = 250;  // more than the prefix saves
  CHECK(router->route(prompt({1, 2, 7}), loads) == 2);
  CHECK(router->route(prompt({2, 3}), loads) == 2);  // a prefix begins at the beginning
  router->forget(1);
  loads[1].tokens = 0;
  loads[2].tokens = 10;
  CHECK(router->route(prompt({1, 2, 3}), loads) == 2);  // {1, 2} is still there
}

TEST_CASE("prefix-aware knows that a session repeats its last turn", "[router]") {
  const auto router = make_prefix_aware(0);
  std::vector<ReplicaLoad> loads = idle(2);
  CHECK(router->route(timed(0, 100, 50, "a"), loads) == 0);
  loads[0].tokens = 120;
  CHECK(router->route(timed(0, 200, 50, "b"), loads) == 1);
  CHECK(router->route(timed(0, 200, 50, "a"), loads) == 0);
}
