// Each replica in turn.
#include "cluster/router.hpp"

namespace servesim {
namespace {

class RoundRobin : public Router {
 public:
  std::size_t route(const Request&, std::span<const ReplicaLoad> replicas) override {
    while (!replicas[next_ % replicas.size()].up) ++next_;
    return next_++ % replicas.size();
  }

 private:
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Router> make_round_robin(std::uint64_t) {
  return std::make_unique<RoundRobin>();
}

}  // namespace servesim
