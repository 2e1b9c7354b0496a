/// What an engine tells of its steps to those who watch it (Observer::on_steps).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/time.hpp"
#include "cost/step_cost_model.hpp"
#include "sched/batch_policy.hpp"

namespace servesim {

/// KvUsage over time, in slot-nanoseconds.
struct KvLevels {
  double allocated = 0, internal = 0, reserved = 0;
};

/// A stage of a pipeline at work.
struct StageRun {
  SimTime begin, end;
};

/// Steps that one engine took in a row under one decision: a single one, or a stretch of decode
/// steps that are equal but for one more token per sequence. Sums are over all of them.
struct StepReport {
  std::int32_t replica = 0;
  std::int64_t steps = 0;        ///< 0: nothing ran, but the KV pool or the queue may have changed
  SimTime scheduled;             ///< when the first was decided
  SimTime last_scheduled;        ///< when the last was
  SimTime begin, end;            ///< on the device: of the first, of the last
  SimTime busy;                  ///< EngineStats::busy
  std::int64_t decode_seqs = 0;  ///< of each step
  std::int64_t decode_tokens = 0;        ///< of each step
  std::int64_t decode_context = 0;       ///< of the first step (StepShape)
  std::int64_t context_growth = 0;       ///< what it gains per step
  std::span<const PrefillChunk> chunks;  ///< of the only step; valid during the call
  std::span<const StageRun> stages;      ///< of a pipeline, for the only step; during the call
  std::int64_t waiting = 0;              ///< requests in the scheduler's queue after the decision
  KvUsage kv, kv_last;                   ///< after the allocations of the first, of the last
  KvLevels kv_integral;                  ///< of a stretch: from `scheduled` to `last_scheduled`
  std::array<double, kComponentCount> seconds{};  ///< by Component; kHost is what was exposed
  double flops = 0;
  double hbm_bytes = 0;

  std::int64_t prefill_tokens() const {
    std::int64_t tokens = 0;
    for (const PrefillChunk& chunk : chunks) tokens += chunk.tokens;
    return tokens;
  }
  std::int64_t seqs() const { return decode_seqs + std::ssize(chunks); }
};

/// `bytes` that crossed one link at an even rate.
struct LinkReport {
  std::string_view link;
  SimTime begin, end;
  double bytes = 0;
  double bytes_per_s = 0;  ///< the link's bandwidth
};

/// A request's KV cache on its way from one place to another.
struct TransferReport {
  std::uint64_t index = 0;    ///< of the request in the trace
  std::int32_t replica = -1;  ///< that receives it
  SimTime begin, end;
  double bytes = 0;
};

}  // namespace servesim
