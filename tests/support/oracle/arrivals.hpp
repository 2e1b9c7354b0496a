/// The requests that will reach a scheduler, in the order in which they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/oracle/recorder.hpp"
#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// Requests by arrival, equal times in file order; those that can never fit are rejected here, so
/// no engine loop ever wakes up for them.
class Arrivals {
 public:
  /// Sorts the requests and records the rejections.
  Arrivals(const Config& config, const std::vector<Request>& requests, Recorder& recorder);

  /// True when no request is left.
  bool empty() const { return next_ == order_.size(); }

  /// Arrival time of the next request. REQUIRES: not empty.
  std::int64_t next_ns() const;

  /// Removes and returns the requests that have arrived by `now_ns`.
  std::vector<std::size_t> drain(std::int64_t now_ns);

 private:
  const std::vector<Request>& requests_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
};

}  // namespace servesim::oracle
