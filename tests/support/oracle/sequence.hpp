/// The scheduler's state of one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/oracle/block_pool.hpp"
#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// Where a sequence is in its life.
enum class SequenceStatus { kWaiting, kRunning, kPreempted, kFinished };

/// One request as the scheduler sees it; its tokens are the prompt followed by the outputs so far.
struct Sequence {
  std::size_t index = 0;  ///< Index of the request in the trace.
  const Request* request = nullptr;
  SequenceStatus status = SequenceStatus::kWaiting;
  std::int64_t outputs = 0;
  std::int64_t computed = 0;      ///< Advances when a step is scheduled.
  std::int64_t spec = 0;          ///< Draft tokens to verify in the next step.
  std::int64_t placeholders = 0;  ///< Outputs in flight (asynchronous scheduling only).
  std::int64_t inflight = 0;      ///< Tokens scheduled, results not yet processed.
  std::int64_t stale = 0;         ///< Tokens in flight at the last preemption, still not processed.
  bool prefill_chunk = false;     ///< The last scheduled step stopped short of the known tokens.
  std::vector<BlockId> blocks;
  std::int64_t num_registered = 0;   ///< Leading blocks that are findable by content.
  std::vector<BlockKey> block_keys;  ///< One for each full block of known tokens.
  std::int64_t preemptions = 0;
  std::int64_t high_water = 0;  ///< Most tokens ever thrown away by a preemption.
  std::int64_t recomputed_tokens = 0;

  std::int64_t num_tokens() const { return request->prompt_len + outputs; }
};

}  // namespace servesim::oracle
