// The replica with the fewest tokens, or requests, outstanding; the first of them on a tie.
#include "cluster/router.hpp"

namespace servesim {
namespace {

class LeastLoaded : public Router {
 public:
  std::size_t route(const Request&, std::span<const ReplicaLoad> replicas) override {
    return cheapest(replicas, [](const ReplicaLoad& load, std::size_t) { return load.tokens; });
  }
};

class JoinShortestQueue : public Router {
 public:
  std::size_t route(const Request&, std::span<const ReplicaLoad> replicas) override {
    return cheapest(replicas, [](const ReplicaLoad& load, std::size_t) { return load.requests; });
  }
};

}  // namespace

std::unique_ptr<Router> make_least_loaded(std::uint64_t) {
  return std::make_unique<LeastLoaded>();
}

std::unique_ptr<Router> make_join_shortest_queue(std::uint64_t) {
  return std::make_unique<JoinShortestQueue>();
}

}  // namespace servesim
