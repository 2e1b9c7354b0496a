/// A request inside one engine.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/time.hpp"

namespace servesim {

using SeqId = std::uint32_t;
inline constexpr SeqId kNoSeq = ~SeqId{0};

/// When what has not happened did.
inline constexpr SimTime kNever = SimTime(-1);

/// The caller's name for a request; comes back with its outcome.
using Ticket = std::uint32_t;

/// Where the KV cache of a sequence comes from and goes to (section 8 of the scheduler semantics).
enum class KvRole : std::uint8_t {
  kLocal,    ///< computed here, freed at the end
  kSend,     ///< its blocks stay after the end until release_kv()
  kPush,     ///< likewise, and on_kv_planned() tells of each chunk
  kReceive,  ///< that of the prompt comes from elsewhere: its blocks wait for kv_arrived()
};

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
  KvRole kv_role = KvRole::kLocal;
};

/// What became of a sequence, or of an aborted one had become so far.
struct SequenceOutcome {
  SimTime scheduled = kNever;
  SimTime first_token = kNever;
  SimTime last_token = kNever;
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
  /// A kReceive sequence has its blocks: `cached` of its prompt's tokens are there already, in
  /// whole blocks, and the KV of the `blocks` blocks after them is to be sent.
  virtual void on_kv_wanted(Ticket /*ticket*/, std::int64_t /*cached*/, std::int64_t /*blocks*/) {}
  /// The step being planned computes the KV of a kPush sequence up to its token `upto`.
  virtual void on_kv_planned(Ticket /*ticket*/, std::int64_t /*upto*/) {}
  /// That step runs from `begin` to `end`.
  virtual void on_step_launched(SimTime /*begin*/, SimTime /*end*/) {}
};

}  // namespace servesim
