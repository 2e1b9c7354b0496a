/// Which replica takes a request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "workload/request.hpp"

namespace servesim {

/// What a router may know of a replica: what it was given and has not finished.
struct ReplicaLoad {
  std::int64_t requests = 0;
  std::int64_t tokens = 0;  ///< input and output tokens of these requests
  bool up = true;

  void add(std::int64_t more_requests, std::int64_t more_tokens) {
    requests += more_requests;
    tokens += more_tokens;
  }
};

inline bool any_up(std::span<const ReplicaLoad> replicas) {
  return std::any_of(replicas.begin(), replicas.end(),
                     [](const ReplicaLoad& load) { return load.up; });
}

/// Routes requests. Deterministic.
class Router {
 public:
  virtual ~Router() = default;
  /// ENSURES: the result is the index of a replica that is up. REQUIRES: some replica is.
  virtual std::size_t route(const Request& request, std::span<const ReplicaLoad> replicas) = 0;
  /// A replica has lost what it had cached.
  virtual void forget(std::size_t /*replica*/) {}
};

using RouterFactory = std::function<std::unique_ptr<Router>(std::uint64_t seed)>;

std::unique_ptr<Router> make_round_robin(std::uint64_t seed);
std::unique_ptr<Router> make_random(std::uint64_t seed);
std::unique_ptr<Router> make_least_loaded(std::uint64_t seed);
std::unique_ptr<Router> make_join_shortest_queue(std::uint64_t seed);
std::unique_ptr<Router> make_power_of_two(std::uint64_t seed);
std::unique_ptr<Router> make_session_sticky(std::uint64_t seed);
std::unique_ptr<Router> make_prefix_aware(std::uint64_t seed);

/// The replica that is up and has the least of `cost(load, index)`; the first of them on a tie.
/// REQUIRES: some replica is up.
template <typename Cost>
std::size_t cheapest(std::span<const ReplicaLoad> replicas, Cost cost) {
  std::size_t best = replicas.size();
  std::int64_t least = 0;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    if (!replicas[i].up) continue;
    const std::int64_t its = cost(replicas[i], i);
    if (best == replicas.size() || its < least) {
      best = i;
      least = its;
    }
  }
  return best;
}

}  // namespace servesim
