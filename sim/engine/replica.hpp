/// One engine: the loop plan -> price -> commit on simulated time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/branch_hints.hpp"
#include "cost/step_cost_model.hpp"
#include "engine/engine_stats.hpp"
#include "engine/observer.hpp"
#include "engine/step_report.hpp"
#include "kv/block_size.hpp"
#include "sched/batch_policy.hpp"

namespace servesim {

/// Runs one BatchPolicy, one batch in flight, (asynchronous scheduling) two or (a pipeline) one for
/// each stage, as vLLM's engine core does: schedule while there is room, else wait for the oldest
/// batch and take in its results. A batch goes from stage to stage as they become free.
/// A plan that stands for several steps is taken as one stretch: its steps are priced only as far
/// as the clock has come, and an arrival that could change the decision cuts it short at the next
/// schedule() call.
class Replica {
 public:
  /// `host_step` is the host's share of a step, which delays the batch it prepares unless the batch
  /// before it still runs then. With `wait_for_arrivals`, a synchronous step that could schedule
  /// nothing waits for the next arrival while any is expected (the loop of the recorded schedules);
  /// else it is tried again at once.
  Replica(std::unique_ptr<BatchPolicy> policy, std::shared_ptr<StepCostModel> cost,
          SequenceSink& sink, SimTime host_step, bool wait_for_arrivals);

  /// Enqueues a request that arrives `now`. REQUIRES: time does not run back.
  void add(const NewSequence& sequence, SimTime now);

  /// When act() is due; SimTime::max() while there is nothing to do.
  SimTime next_event() const { return next_event_; }

  /// Does what is due at `now` and after all arrivals up to it.
  void act(SimTime now);

  /// Passes on what happens to KV that other engines read or send, `now`. See BatchPolicy.
  void release_kv(Ticket ticket, SimTime now);
  void kv_arrived(Ticket ticket, SimTime now);
  void kv_failed(Ticket ticket, SimTime now);
  SequenceOutcome abort(Ticket ticket, SimTime now);

  /// No arrival will come any more. True when that changes next_event().
  bool expect_no_arrivals() {
    arrivals_expected_ = false;
    if (!waiting_for_arrival_) return false;
    waiting_for_arrival_ = false;
    next_event_ = last_action_;
    return true;
  }

  /// From now on `observer` is told of all steps (Observer::on_steps), as those of `replica`.
  void watch(Observer& observer, std::int32_t replica, const StepWatch& watch);
  /// Tells that the pool or the queue has changed and no step follows, if anyone is to be told.
  void report_level(SimTime now);

  /// The sums so far, the KV integral up to `now`.
  EngineStats stats(SimTime now);
  /// The same of a replica that dies `now`: what its batches in flight would still have done is
  /// left out, of all sums in proportion.
  EngineStats stats_at_death(SimTime now);
  const BatchPolicy& policy() const { return *policy_; }

 private:
  struct Flight {
    SimTime end;
    std::int64_t gap_count = 0;
    SimTime begin;
    StepResults results = StepResults::kTokens;
  };

  /// Parts of decode steps that are not in stats_ yet: batch sizes come and go, so those of a few
  /// are kept side by side, by batch size.
  struct PendingRest {
    const StepCost* rest = nullptr;
    std::int64_t steps = 0;
  };

  /// Steps taken from a stretch, and the blocks they began.
  struct Taken {
    std::int64_t steps = 0, blocks = 0;
    std::int64_t committed = 0;  ///< steps whose results the policy was told of singly
  };

  /// Whom to tell of steps; null observer: nobody.
  struct Watch {
    Observer* observer = nullptr;
    std::int32_t replica = 0;
    StepWatch wanted;
  };

  /// What steps take and do, added up.
  struct StepSums {
    SimTime busy, bubbles;
    std::array<double, kComponentCount> seconds{};
    double flops = 0, hbm_bytes = 0;

    void add(const StepCost& step, double times) {
      for (std::size_t i = 0; i < kComponentCount; ++i) seconds[i] += times * step.seconds[i];
      flops += times * step.flops;
      hbm_bytes += times * step.hbm_bytes;
    }
  };

  void run(SimTime now);
  bool schedule(SimTime now);
  void commit(SimTime now);
  void start(const StepPlan& plan, SimTime now);
  SimTime launch(SimTime now, SimTime duration);
  SimTime launch_pipelined(const StepCost& cost, SimTime now);
  bool has_pipeline() const { return rarely(has_pipeline_); }
  bool is_watched() const { return rarely(watch_.observer != nullptr); }
  /// When the device, or the first stage of the pipeline, has done what it has.
  SimTime next_begin() const { return has_pipeline() ? stages_.front().end : device_free_; }
  SimTime with_transfer(const StepPlan& plan, SimTime compute);
  void note_peak() {
    if (kv_.allocated > peak_.allocated) peak_ = kv_;
  }
  void cool(SimTime until);
  void wake(SimTime now);
  template <typename Change>
  void intervene(SimTime now, Change change);
  void watch_progress(const StepPlan& plan, bool unfinished);
  StepSums completed(StepSums sums) const;

  void advance(SimTime until, bool inclusive);
  Taken take_until(SimTime until, bool inclusive);
  bool settled() const;
  const DecodeStep& constant_price(std::int64_t seqs);
  [[gnu::noinline]] void add_constant_price(std::size_t seqs);
  std::int64_t steps_at_once(SimTime until, bool inclusive) const;
  std::int64_t take_step(SimTime at);
  void settle(SimTime at);
  std::int64_t launch_next(SimTime at);
  void launch_decodes(SimTime now, std::int64_t seqs, std::int64_t context, std::int64_t gap_count);
  void begin_stretch(const StepPlan& plan);
  SimTime next_action();
  /// Where the plan's block_growth tells of the step after the last one.
  std::int64_t next_phase() const {
    return growth_phase_ + 1 == block_size_.tokens() ? 0 : growth_phase_ + 1;
  }
  std::int64_t take_steps(std::int64_t count);
  void grow(KvUsage& kv, std::int64_t blocks, std::int64_t filled) const;
  void grow_kv(std::int64_t blocks, std::int64_t filled);
  void account_kv(SimTime now);
  void add_kv(std::int64_t ns, const KvUsage& kv);
  void count_rest(const StepCost* rest, std::int64_t decodes, std::int64_t steps);
  [[gnu::noinline]] void flush_rest(PendingRest& pending);
  SimTime stretch_bound();

  // watched.cpp
  Taken take_watched(SimTime until, bool inclusive);
  Taken take_piece(SimTime at, SimTime until, bool inclusive);
  void start_watched(const StepPlan& plan, SimTime now);
  StepReport open_report(SimTime scheduled, bool runs) const;
  void close_report(StepReport& report, const StepSums& before);
  StepSums sums_seen(std::int64_t decodes) const;

  const Flight& front() const { return flights_.front(); }
  /// Field by field: a struct that is put together elsewhere and copied in whole waits for the
  /// stores of its parts.
  void push(SimTime end, std::int64_t gap_count) {
    Flight& last = flights_[in_flight_++];
    last.results = StepResults::kTokens;
    last.end = end;
    last.gap_count = gap_count;
    last.begin = last_begin_;
  }
  void take_results(SimTime at) {
    if (front().gap_count > 0) sink_.on_token_gaps(at - last_done_, front().gap_count);
    last_done_ = at;
    pop();
  }
  /// There are few: the younger ones move up.
  void pop() {
    --in_flight_;
    for (std::size_t i = 0; i < in_flight_; ++i) {
      flights_[i].end = flights_[i + 1].end;
      flights_[i].gap_count = flights_[i + 1].gap_count;
      flights_[i].begin = flights_[i + 1].begin;
      flights_[i].results = flights_[i + 1].results;
    }
  }

  std::unique_ptr<BatchPolicy> policy_;
  std::shared_ptr<StepCostModel> cost_;  ///< of all replicas that are alike
  SequenceSink& sink_;
  SimTime host_step_;
  bool wait_for_arrivals_;
  bool arrivals_expected_ = true;
  bool waiting_for_arrival_ = false;
  std::size_t max_in_flight_;
  bool constant_steps_;
  BlockSize block_size_;

  std::array<Flight, kMostPipelineStages> flights_;  ///< the oldest first
  std::size_t in_flight_ = 0;
  std::vector<StageRun> stages_;  ///< what each stage did last; one without a pipeline
  bool has_pipeline_;
  SimTime next_event_ = SimTime::max();
  SimTime last_begin_;   ///< when the batch launched last starts on the device
  SimTime device_free_;  ///< and when it ends
  SimTime last_done_;    ///< when the results taken in last had come
  SimTime last_action_;
  Heat heat_;

  // The last plan, and where its stretch has come.
  const StepPlan* plan_ = nullptr;           ///< the policy's
  std::int64_t stretch_left_ = 0;            ///< steps that are still to be scheduled
  std::int64_t context_ = 0;                 ///< before the next one
  std::int64_t growth_phase_ = 0;            ///< of the last one
  const DecodeStep* price_ = nullptr;        ///< of a step of its decodes
  DecodeStep varying_price_;                 ///< where that hangs on their context
  std::vector<DecodeStep> constant_prices_;  ///< by their number, where it does not; no rest: not
                                             ///< asked for yet

  Watch watch_;
  std::int64_t steps_without_output_ = 0;
  KvUsage kv_;
  std::array<PendingRest, 64> pending_rests_;
  double decode_context_sum_ = 0;  ///< of the steps priced by decode_step()
  double attention_seconds_ = 0;   ///< likewise
  SimTime exposed_host_;
  SimTime exposed_transfer_;
  KvUsage peak_;
  double allocated_ns_ = 0, internal_ns_ = 0, reserved_ns_ = 0, external_ns_ = 0;  ///< slot-ns
  StepSums sums_;      ///< without pending rests and what completed() adds
  EngineStats stats_;  ///< filled in by stats()
};

}  // namespace servesim
