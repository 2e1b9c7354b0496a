/// What a simulation tells those who watch it. The engine knows no reporter.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/time.hpp"

namespace servesim {

enum class RequestStatus : std::uint8_t { kCompleted, kRejected, kUnfinished };

/// The fate of one request. Times are the client's; those of events that did not happen are -1 ns.
struct RequestRecord {
  std::uint64_t index = 0;  ///< 0-based position in the trace
  std::string_view id;      ///< empty when the trace names none
  std::string_view session;
  SimTime arrival;  ///< when it was sent (later than the trace says if a concurrency limit held it
                    ///< back)
  SimTime scheduled;    ///< when a scheduler first put it into a step
  SimTime first_token;  ///< when the client saw its first token
  SimTime last_token;   ///< when the client saw its last token
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens =
      0;  ///< as the trace asks; for an unfinished request `generated_tokens` is what came
  std::int64_t generated_tokens = 0;
  RequestStatus status = RequestStatus::kCompleted;
  std::string_view reason;  ///< why it was rejected or is unfinished; empty when completed
  std::int32_t replica = -1;
  std::int64_t prefix_hit_tokens = 0;  ///< found in the prefix cache at its first admission
  std::int32_t preemptions = 0;
};

/// Receives events of a run, in the order of simulated time except where said.
class Observer {
 public:
  virtual ~Observer() = default;

  /// Once for every request of the trace, when its fate is known.
  virtual void on_request(const RequestRecord&) {}
  /// `count` gaps of length `gap` between consecutive tokens of a request (ITL). Order is
  /// unspecified.
  virtual void on_token_gaps(SimTime /*gap*/, std::int64_t /*count*/) {}
};

}  // namespace servesim
