// The replica with the fewest tokens outstanding; the first of them on a tie.
#include <algorithm>

#include "cluster/router.hpp"

namespace servesim {
namespace {

class LeastLoaded : public Router {
 public:
  std::size_t route(const Request&, std::span<const ReplicaLoad> replicas) override {
    const auto fewest = std::min_element(
        replicas.begin(), replicas.end(),
        [](const ReplicaLoad& a, const ReplicaLoad& b) { return a.tokens < b.tokens; });
    return static_cast<std::size_t>(fewest - replicas.begin());
  }
};

}  // namespace

std::unique_ptr<Router> make_least_loaded(std::uint64_t) {
  return std::make_unique<LeastLoaded>();
}

}  // namespace servesim
