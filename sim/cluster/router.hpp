/// Which replica takes a request.
#pragma once

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
};

/// Routes requests. Deterministic.
class Router {
 public:
  virtual ~Router() = default;
  /// ENSURES: the result is a valid index into `replicas`. REQUIRES: `replicas` is not empty.
  virtual std::size_t route(const Request& request, std::span<const ReplicaLoad> replicas) = 0;
};

using RouterFactory = std::function<std::unique_ptr<Router>(std::uint64_t seed)>;

std::unique_ptr<Router> make_round_robin(std::uint64_t seed);
std::unique_ptr<Router> make_least_loaded(std::uint64_t seed);

}  // namespace servesim
