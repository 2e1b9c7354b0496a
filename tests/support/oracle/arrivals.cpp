#include "support/oracle/arrivals.hpp"

#include <algorithm>

#include "support/oracle/oracle.hpp"

namespace servesim::oracle {

Arrivals::Arrivals(const Config& config, const std::vector<Request>& requests, Recorder& recorder)
    : requests_(requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto reason = never_fits(config, requests[i]);
    if (reason.has_value()) {
      recorder.reject(i, *reason);
    } else {
      order_.push_back(i);
    }
  }
  std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return requests[a].arrival_ns < requests[b].arrival_ns;
  });
}

std::int64_t Arrivals::next_ns() const {
  return requests_[order_.at(next_)].arrival_ns;
}

std::vector<std::size_t> Arrivals::drain(std::int64_t now_ns) {
  std::vector<std::size_t> arrived;
  while (!empty() && next_ns() <= now_ns) {
    arrived.push_back(order_[next_]);
    next_ += 1;
  }
  return arrived;
}

}  // namespace servesim::oracle
