/// A trace from a list.
#pragma once

#include <utility>
#include <vector>

#include "workload/trace_reader.hpp"

namespace servesim::testing {

class ListTrace : public TraceReader {
 public:
  explicit ListTrace(std::vector<Request> requests) : requests_(std::move(requests)) {}
  bool next(Request& request) override {
    if (next_ == requests_.size()) return false;
    request = requests_[next_];
    request.index = next_++;
    return true;
  }

 private:
  std::vector<Request> requests_;
  std::size_t next_ = 0;
};

inline Request timed(std::int64_t arrival_ms, std::int64_t input, std::int64_t output,
                     std::string session = "") {
  Request request;
  request.arrival = SimTime::from_ms(arrival_ms);
  request.input_tokens = input;
  request.output_tokens = output;
  request.session = std::move(session);
  return request;
}

inline Request follower(std::int64_t delay_ms, std::int64_t input, std::int64_t output,
                        std::string session) {
  Request request = timed(0, input, output, std::move(session));
  request.closed_loop = true;
  request.delay = SimTime::from_ms(delay_ms);
  return request;
}

}  // namespace servesim::testing
