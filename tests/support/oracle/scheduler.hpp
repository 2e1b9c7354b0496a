/// Decides, one step at a time, what runs: vLLM's V1 scheduler, literally.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "support/oracle/kv_manager.hpp"
#include "support/oracle/sequence.hpp"
#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// What one sequence does in a step.
struct StepEntry {
  std::size_t sequence = 0;
  std::int64_t tokens = 0;
  std::int64_t drafts = 0;
  std::int64_t context = 0;  ///< Tokens computed before this step.
  bool prefill_chunk = false;
};

/// The decision for one step; sequences by index.
struct StepPlan {
  std::vector<StepEntry> entries;
  std::vector<std::size_t> admitted;
  std::vector<std::size_t> resumed;
  std::vector<std::size_t> preempted;
  std::map<std::size_t, std::int64_t> prefix_hit_tokens;
  std::int64_t free_blocks = 0;
  std::int64_t shared_reads = 0;  ///< Tokens of blocks held, once per hold beyond the first.
  std::vector<std::size_t> running;
  std::vector<std::size_t> waiting;
};

/// What the results of one step changed; sequences by index.
struct StepResults {
  std::map<std::size_t, std::int64_t> tokens_out;
  std::map<std::size_t, std::int64_t> accepted;
  std::vector<std::size_t> finished;
  std::int64_t free_blocks_after = 0;
};

/// Continuous batching with paged KV, preemption by recomputation, and prefix caching.
class Scheduler {
 public:
  /// A scheduler with nothing to do; both arguments must outlive it.
  Scheduler(const Config& config, const std::vector<Request>& requests);

  /// Appends a request that has arrived.
  void add(std::size_t request);

  /// True while a request that was added has not finished.
  bool has_unfinished() const;

  /// True when a step must run: unfinished requests, or ones that finished since the last step.
  bool is_live() const { return has_unfinished() || finished_since_schedule_; }

  /// Decides the next step; computed counts advance here, before the step executes.
  StepPlan schedule();

  /// Processes the results of the oldest step not yet processed.
  StepResults update(const StepPlan& plan);

  /// The state of one request.
  const Sequence& sequence(std::size_t request) const { return sequences_.at(request); }

  /// Throws unless queues, counts and blocks are consistent.
  void check_integrity() const;

 private:
  using Queue = std::vector<std::size_t>;

  // scheduler_running.cpp
  void schedule_running(StepPlan& plan, std::int64_t& budget);
  bool last_token_is_in_flight(const Sequence& sequence) const;
  std::int64_t running_tokens(const Sequence& sequence, std::int64_t budget) const;
  std::size_t choose_victim() const;
  void evict_from_running(std::size_t position, StepPlan& plan, std::int64_t& budget);
  void preempt(Sequence& sequence);

  // scheduler_waiting.cpp
  void schedule_waiting(StepPlan& plan, std::int64_t& budget);
  Queue& next_queue();
  std::size_t head_position(const Queue& queue) const;
  bool only_decodes_scheduled(const StepPlan& plan) const;
  bool try_admit(Sequence& sequence, StepPlan& plan, std::int64_t& budget, bool padding);
  void record_admission(Sequence& sequence, const StepEntry& entry, StepPlan& plan);
  std::vector<std::size_t> waiting_in_order() const;

  // scheduler.cpp
  bool comes_before(std::size_t a, std::size_t b) const;
  void after_schedule(StepPlan& plan);
  void update_entry(const StepEntry& entry, StepResults& results);
  void append_tokens(Sequence& sequence, std::int64_t returned, bool stale, StepResults& results);
  void remove_finished(Queue& queue) const;

  const Config& config_;
  KvManager kv_;
  std::vector<Sequence> sequences_;
  Queue waiting_;  // FCFS: in order; priority: unordered, the head is searched for
  Queue skipped_;  // passed over because the output of a preempted request is still in flight
  Queue running_;
  bool finished_since_schedule_ = false;
};

}  // namespace servesim::oracle
