/// A request inside one engine.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/time.hpp"

namespace servesim {

using SeqId = std::uint32_t;
inline constexpr SeqId kNoSeq = ~SeqId{0};

/// The caller's name for a request; comes back with its outcome.
using Ticket = std::uint32_t;

/// A request as it reaches a scheduler. REQUIRES: it can fit, see rejection_reason().
struct NewSequence {
  Ticket ticket = 0;
  std::uint64_t index = 0;      ///< position in the trace
  std::string_view id;          ///< breaks ties between equal priorities and arrivals; may be empty
  std::int64_t prompt = 0;      ///< tokens
  std::int64_t max_tokens = 0;  ///< output tokens; generation also stops at max_model_len in all
  std::int32_t priority = 0;    ///< lower is more urgent
  SimTime arrival;
  std::int64_t hash_block = 0;  ///< tokens per hash id; 0: no ids
  std::span<const std::uint64_t> hash_ids;
  std::int64_t session =
      -1;  ///< requests of one session may reuse what earlier ones generated; -1: none
};

/// What became of a sequence.
struct SequenceOutcome {
  SimTime scheduled;
  SimTime first_token;
  SimTime last_token;
  std::int64_t outputs = 0;
  std::int64_t prefix_hit_tokens = 0;  ///< at its first admission
  std::int32_t preemptions = 0;
};

/// Receives what a scheduler has to tell about single sequences.
class SequenceSink {
 public:
  virtual ~SequenceSink() = default;
  virtual void on_finished(Ticket ticket, const SequenceOutcome& outcome) = 0;
  /// `count` gaps between consecutive tokens that are not those of plain decode steps.
  virtual void on_token_gaps(SimTime gap, std::int64_t count) = 0;
  virtual void on_preempted(Ticket /*ticket*/, SimTime /*at*/) {}
  virtual void on_resumed(Ticket /*ticket*/, SimTime /*at*/) {}
};

}  // namespace servesim
