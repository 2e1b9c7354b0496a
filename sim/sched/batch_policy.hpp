/// The interface of every batching policy: decide a step, then take in its results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "cost/step_shape.hpp"
#include "kv/offload_counters.hpp"
#include "sched/scheduler_config.hpp"
#include "sched/sequence.hpp"

namespace servesim {

class ScheduleLog;

/// How the KV pool is filled, in slots, each for a token of one group of layers: with one group, in
/// tokens. Shared blocks count once.
struct KvUsage {
  std::int64_t allocated = 0;  ///< slots of allocated blocks
  std::int64_t internal = 0;   ///< of these, not yet filled inside a last block
  std::int64_t reserved = 0;   ///< of these, held for tokens that have not come
  std::int64_t external = 0;   ///< free slots of no use to the next request
};

/// What the results of a step bring beside one more token of each decode.
enum class StepResults : std::uint8_t {
  kTokens,       ///< nothing
  kFirstTokens,  ///< of requests, too
  kEnds,         ///< of requests, too
};

/// Steps that a plan decides along with its own: every one of the same decodes gets one more token
/// in each, nothing else changes.
struct Stretch {
  std::int64_t steps = 0;
  std::int64_t seqs = 0;            ///< decodes
  std::int64_t gap_count = 0;       ///< of these, the ones whose token ends a gap
  std::int64_t context = 0;         ///< tokens computed before the first step, summed over them
  std::int64_t context_growth = 0;  ///< tokens that this gains per step
  std::int64_t slot_growth = 0;     ///< slots that these tokens fill; blocks begun in block_size()
                                    ///< steps
  /// Blocks that step j begins to fill (j = 0: the plan's own): block_growth[(growth_phase + j) %
  /// block_size()]. The table holds two such periods.
  const std::int32_t* block_growth = nullptr;
  std::int64_t growth_phase = 0;
  bool growth_was_reserved = false;  ///< these blocks were allocated before, else they are now
};

/// One decided step in aggregates, and for how many steps after it the decision stands.
struct StepPlan {
  std::int64_t decode_seqs = 0;
  std::int64_t decode_tokens = 0;
  std::int64_t decode_context = 0;  ///< tokens computed before the step, summed over the decodes
  std::vector<PrefillChunk> chunks;
  std::int64_t sampled = 0;
  std::int64_t gap_count = 0;  ///< decodes whose previous token came with the step before
  std::int64_t tokens = 0;     ///< in all
  SharedContext shared;        ///< prefix hits that several running sequences hold
  KvUsage kv;                  ///< after this step's allocations
  SimTime transfer;  ///< of KV moved for this step: copies within HBM, to and from the host
  bool transfer_overlaps = false;  ///< beside the step's kernels instead of before them
  bool pushes_kv = false;          ///< on_kv_planned() was told of it

  /// What follows unless an arrival changes it. Its steps need no plan() and their results no
  /// commit(). Those of this step and of the one before it do, unless they are kTokens; a commit()
  /// that brings kEnds also brings `kv` and `shared` up to date.
  Stretch stretch;
  StepResults results = StepResults::kTokens;         ///< of this step; with a stretch only
  StepResults results_before = StepResults::kTokens;  ///< of the step before; likewise

  StepShape shape() const {
    return {decode_seqs, decode_tokens, decode_context, chunks, sampled, shared};
  }
};

/// Decides what one engine computes. Deterministic; knows nothing of time but what it is told.
class BatchPolicy {
 public:
  virtual ~BatchPolicy() = default;

  /// Enqueues a request.
  virtual void add(const NewSequence& sequence) = 0;

  /// Decides the next step (vLLM's schedule()); its blocks are allocated and its tokens count as
  /// computed from now on. The plan stays valid until the next call. ENSURES: tokens <= the token
  /// budget.
  virtual const StepPlan& plan(SimTime now) = 0;

  /// Takes `steps` steps of the last plan's stretch as planned, and as many results as taken in, of
  /// which `committed` went through commit(); the steps begin to fill `blocks` blocks, and the last
  /// of the results came at `last_done`. REQUIRES: no more steps than the stretch has.
  virtual void extend(std::int64_t steps, std::int64_t committed, std::int64_t blocks,
                      SimTime last_done) = 0;

  /// Takes in the results of the oldest step not yet committed, finished at `done` (vLLM's
  /// update_from_output()).
  virtual void commit(SimTime done) = 0;

  /// Something to schedule, or a finish that the next schedule() call must hear of.
  virtual bool live() const = 0;
  virtual bool has_unfinished() const = 0;
  virtual std::int64_t waiting() const = 0;  ///< requests in the queue, preempted ones included
  /// Whether one more request in the queue could change the decision that stands.
  virtual bool arrival_matters() const = 0;
  /// Batches the engine may have in flight: 2 with asynchronous scheduling, else 1.
  virtual int batches_in_flight() const = 0;
  /// Frees the blocks that a kSend or kPush sequence left. True when a request waits that may fit
  /// now.
  virtual bool release_kv(Ticket ticket);
  /// The KV that a kReceive sequence waits for is there.
  virtual void kv_arrived(Ticket ticket);
  /// That KV will never come: the prompt is computed here, as far as it is not cached.
  virtual void kv_failed(Ticket ticket);
  /// Forgets a request, in whatever state it is, and tells how far it had come. REQUIRES: it has
  /// not ended.
  virtual SequenceOutcome abort(Ticket ticket);
  virtual KvUsage kv_usage() = 0;
  virtual std::int64_t block_size() const = 0;  ///< tokens
  virtual const struct SchedulerCounters& counters() const = 0;

  /// Throws std::logic_error when the state contradicts itself.
  virtual void check_integrity() const = 0;
};

/// Sums over the life of a scheduler.
struct SchedulerCounters {
  std::int64_t preemptions = 0;
  std::int64_t recomputed_tokens = 0;  ///< computed again because a preemption had thrown them away
  std::int64_t prefix_hit_tokens = 0;
  std::int64_t prefix_queried_tokens = 0;  ///< prompt tokens that admissions looked up
  std::int64_t swapped_tokens = 0;         ///< slots of the blocks moved to the host and back
  std::int64_t copied_tokens = 0;          ///< moved to a larger contiguous region
  OffloadCounters offload;

  SchedulerCounters& operator+=(const SchedulerCounters& other) {
    preemptions += other.preemptions;
    recomputed_tokens += other.recomputed_tokens;
    prefix_hit_tokens += other.prefix_hit_tokens;
    prefix_queried_tokens += other.prefix_queried_tokens;
    swapped_tokens += other.swapped_tokens;
    copied_tokens += other.copied_tokens;
    offload += other.offload;
    return *this;
  }
};

/// Makes a policy that reports to `sink` and, when not null, writes every step to `log`.
using PolicyFactory = std::function<std::unique_ptr<BatchPolicy>(
    const SchedulerConfig& config, SequenceSink& sink, ScheduleLog* log, std::uint64_t seed)>;

/// Why a request of these lengths can never be served, or empty when it can.
std::string_view rejection_reason(const SchedulerConfig& config, std::int64_t prompt,
                                  std::int64_t max_tokens);

}  // namespace servesim
