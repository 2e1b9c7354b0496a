/// What a simulation tells those who watch it. The engine knows no reporter.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/time.hpp"

namespace servesim {

struct LinkReport;
struct StepReport;
struct TransferReport;

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

/// What of the engines' work an observer wants to hear.
struct StepWatch {
  bool steps = false;  ///< on_steps() and all below it
  /// Steps scheduled in [singly_from, singly_until) are told one by one, others in stretches.
  SimTime singly_from, singly_until;
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

  /// Asked once, when the first request is sent. A run in which nobody wants steps spends no time
  /// on the events below.
  virtual StepWatch watch(SimTime /*first_arrival*/) { return {}; }
  /// The steps of each replica come in order; those of different replicas may overlap.
  virtual void on_steps(const StepReport&) {}
  /// Request `index` lost its place in the engine, or got it back.
  virtual void on_preempted(std::uint64_t /*index*/, SimTime /*at*/) {}
  virtual void on_resumed(std::uint64_t /*index*/, SimTime /*at*/) {}
  virtual void on_link(const LinkReport&) {}
  virtual void on_transfer(const TransferReport&) {}
};

}  // namespace servesim
