// A session stays where its first request went; that one, and requests without a session, go to the
// replica with the fewest tokens outstanding.
#include <unordered_map>

#include "cluster/router.hpp"

namespace servesim {
namespace {

class SessionSticky : public Router {
 public:
  std::size_t route(const Request& request, std::span<const ReplicaLoad> replicas) override {
    if (!request.session.empty()) {
      const auto found = homes_.find(request.session);
      if (found != homes_.end() && replicas[found->second].up) return found->second;
    }
    const std::size_t home =
        cheapest(replicas, [](const ReplicaLoad& load, std::size_t) { return load.tokens; });
    if (!request.session.empty()) homes_[request.session] = home;
    return home;
  }

 private:
  std::unordered_map<std::string, std::size_t> homes_;
};

}  // namespace

std::unique_ptr<Router> make_session_sticky(std::uint64_t) {
  return std::make_unique<SessionSticky>();
}

}  // namespace servesim
