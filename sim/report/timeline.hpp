/// Completions over time: where a run dips.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/observer.hpp"

namespace servesim {

/// What completed in one of equal stretches of a run.
struct TimelineBucket {
  double from_s = 0;  ///< simulated time at which it begins
  double to_s = 0;
  std::int64_t completed = 0;
  std::int64_t output_tokens = 0;  ///< of these
  double mean_ttft_ms = 0;         ///< likewise; 0 when there are none
};

/// Keeps 16 bytes per completed request.
class TimelineRecorder : public Observer {
 public:
  void on_request(const RequestRecord& record) override;
  /// All that was seen in `count` buckets from the first arrival to the last token.
  std::vector<TimelineBucket> buckets(std::size_t count) const;

 private:
  struct Completion {
    SimTime at;
    float ttft_ms;
    std::int32_t output_tokens;
  };
  std::vector<Completion> completions_;
  SimTime first_arrival_ = SimTime::max();
};

}  // namespace servesim
