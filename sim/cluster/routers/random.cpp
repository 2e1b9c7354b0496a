// A replica drawn at random, or the less loaded of two drawn at random (Mitzenmacher, The Power of
// Two Choices in Randomized Load Balancing, 2001).
#include "cluster/router.hpp"
#include "core/rng.hpp"

namespace servesim {
namespace {

/// One of the replicas that are up, other than `except`.
std::size_t draw(Rng& rng, std::span<const ReplicaLoad> replicas, std::size_t except) {
  while (true) {
    const auto drawn = static_cast<std::size_t>(rng.below(replicas.size()));
    if (replicas[drawn].up && drawn != except) return drawn;
  }
}

class Random : public Router {
 public:
  explicit Random(std::uint64_t seed) : rng_(seed, "cluster.router.random") {}
  std::size_t route(const Request&, std::span<const ReplicaLoad> replicas) override {
    return draw(rng_, replicas, replicas.size());
  }

 private:
  Rng rng_;
};

class PowerOfTwo : public Router {
 public:
  explicit PowerOfTwo(std::uint64_t seed) : rng_(seed, "cluster.router.power-of-two") {}
  std::size_t route(const Request&, std::span<const ReplicaLoad> replicas) override {
    const std::size_t first = draw(rng_, replicas, replicas.size());
    const auto is_other = [&](std::size_t i) { return replicas[i].up && i != first; };
    std::size_t others = 0;
    for (std::size_t i = 0; i < replicas.size() && others == 0; ++i) others += is_other(i) ? 1 : 0;
    if (others == 0) return first;
    const std::size_t second = draw(rng_, replicas, first);
    return replicas[second].tokens < replicas[first].tokens ? second : first;
  }

 private:
  Rng rng_;
};

}  // namespace

std::unique_ptr<Router> make_random(std::uint64_t seed) {
  return std::make_unique<Random>(seed);
}

std::unique_ptr<Router> make_power_of_two(std::uint64_t seed) {
  return std::make_unique<PowerOfTwo>(seed);
}

}  // namespace servesim
