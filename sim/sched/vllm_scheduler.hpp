/// vLLM's V1 scheduler: the same decisions, in O(1) per decode step.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/branch_hints.hpp"
#include "core/rng.hpp"
#include "kv/block_pool.hpp"
#include "kv/offload_tiers.hpp"
#include "kv/region_table.hpp"
#include "kv/session_contents.hpp"
#include "sched/batch_policy.hpp"
#include "sched/decode_lane.hpp"
#include "sched/schedule_log.hpp"
#include "sched/sequence_store.hpp"
#include "sched/waiting_queue.hpp"

namespace servesim {

/// Continuous batching as vLLM main decides it (commit 017e9f4448): token budget, running before
/// waiting, chunked prefill or not, FCFS or priority, preemption by recompute, prefix caching,
/// asynchronous scheduling or a pipeline, and speculative decoding. docs/scheduler.md describes the
/// rules.
///
/// Sequences that get one token per step are members of a DecodeGroup and cost nothing per step.
/// When a step's demands do not obviously fit (tokens or blocks are short, priorities, drafts), the
/// members are taken out, vLLM's loop over the running list is run as it stands there, and those
/// that still fit the group go back.
class VllmScheduler : public BatchPolicy {
 public:
  /// `log` may be null. `seed` feeds the acceptance of drafts.
  VllmScheduler(const SchedulerConfig& config, SequenceSink& sink, ScheduleLog* log,
                std::uint64_t seed);

  void add(const NewSequence& sequence) override;
  const StepPlan& plan(SimTime now) override;
  void extend(std::int64_t steps, std::int64_t committed, std::int64_t blocks,
              SimTime last_done) override;
  void commit(SimTime done) override;
  bool live() const override { return !stalled_ && (store_.live() > 0 || finished_since_plan_); }
  bool has_unfinished() const override { return store_.live() > 0; }
  std::int64_t waiting() const override {
    return waiting_.size() + skipped_.size() + static_cast<std::int64_t>(awaiting_.size());
  }
  bool arrival_matters() const override;
  int batches_in_flight() const override {
    return config_.async_scheduling ? 2 : static_cast<int>(config_.pipeline_parallel);
  }
  bool release_kv(Ticket ticket) override;
  void kv_arrived(Ticket ticket) override;
  void kv_failed(Ticket ticket) override;
  SequenceOutcome abort(Ticket ticket) override;
  KvUsage kv_usage() override;
  std::int64_t block_size() const override { return config_.block_size; }
  const SchedulerCounters& counters() const override { return counters_; }
  void check_integrity() const override;

 private:
  /// A sequence's part of a step, where it is more than one more token of a group member.
  struct Entry {
    SeqId seq;
    std::uint64_t generation;
    Ticket ticket;
    std::uint64_t index;
    std::int64_t tokens;
    std::int64_t drafts;
    std::int64_t context;  ///< computed before
    bool samples;          ///< reaches the end of what is known: yields a token
    bool joined;           ///< went into the group with this step: its counters are the group's
  };
  /// A step whose results are to come.
  struct Record {
    std::int64_t step = 0;       ///< the one that it is for
    DecodeLane* lane = nullptr;  ///< whose members are in it; null: nobody's, with a pipeline
    std::int64_t lane_step = 0;
    std::int64_t group_count = 0;
    std::vector<Entry> entries;
    std::vector<SeqId> departed;  ///< left the group while their token of this step was in flight
    LoggedStep logged;

    void open(std::int64_t its_step, DecodeLane& its_lane, std::int64_t its_lane_step);
  };
  struct Finished {
    std::uint32_t run_number;
    SeqId seq;
    bool special;  ///< stands on the list of specials
  };
  /// The blocks of a sequence that ended, which another engine is still to read.
  struct KeptBlocks {
    BlockTable table;
    std::int64_t blocks;
    std::int64_t computed;
  };
  /// What is left of a step's token budget, and whether anyone had to give way.
  struct Decision {
    Record& record;
    std::int64_t budget;
    bool preempted = false;
  };

  // plan(): vllm_scheduler.cpp
  void choose_lane();
  void hold_lane(Record& record);
  bool plan_plain_decodes(Record& record);
  bool plan_in_full(Record& record);
  void retire_predicted();
  void make_special(SeqId id);
  void drop_special(SeqId id);
  void advance(Record& record);
  void join_group(Entry& entry);
  void leave_group(SeqId id, std::int64_t through);
  void leave_group_after_last_step(SeqId id);
  void set_group_plan(std::int64_t count);
  void fill_plan(const Record& record);
  bool specials_only_end() const;
  void plan_stretch(const Record& record, bool preempted);
  bool results_decide_nothing(const Record& record);
  std::int64_t horizon();

  // KV memory: vllm_memory.cpp
  bool allocate(SeqId id, std::int64_t tokens);
  void take_blocks(SeqId id, std::int64_t blocks, std::int64_t registered_tokens);
  void take_from_pool(std::int64_t blocks);
  void give_back_to_pool(std::int64_t blocks);
  void fill_slots(std::int64_t from, std::int64_t to) {
    slack_ -= demand_.slots(to) - demand_.slots(from);
  }
  void release(SeqId id);
  /// Slots of `blocks` blocks that `computed` tokens leave empty.
  std::int64_t empty_slots(std::int64_t blocks, std::int64_t computed) const {
    return blocks * config_.block_size - demand_.slots(computed);
  }
  std::int64_t last_slots(const Sequence& s) const;
  std::int64_t last_blocks(const Sequence& s) const {
    return std::min(blocks_for(last_slots(s)), pool_.usable());
  }
  [[gnu::noinline]] void open_content(SeqId id, const NewSequence& sequence);
  [[gnu::noinline]] void close_content(SeqId id);
  void fill_in_kv_usage();
  [[gnu::noinline]] void divide_reserved_kv();
  std::int64_t reserved_tokens() const;
  bool place_region(SeqId id);
  bool outgrows_region(SeqId id, std::int64_t tokens) const;
  bool grow_region(SeqId id, std::int64_t end);
  void swap_out(Sequence& s);
  std::int64_t match_tiers(SeqId id, std::int64_t cached);
  void bring_in(Sequence& s, std::int64_t cached, std::int64_t hit);
  void price_moves();
  void drop_swapped(Sequence& s);

  // the running pass: vllm_running.cpp
  bool last_token_in_flight(const Sequence& s) const;
  std::int64_t wanted_tokens(const Sequence& s) const;
  bool schedule_running_fast(Decision& decision);
  [[gnu::noinline]] void make_room_from_tail(Decision& decision);
  [[gnu::noinline]] void schedule_running_one_by_one(Decision& decision);
  bool schedule_one(Decision& decision, SeqId id);
  void schedule(Decision& decision, SeqId id, std::int64_t tokens, std::int64_t drafts);
  SeqId choose_victim() const;
  void undo(Decision& decision, SeqId victim);
  void preempt(Decision& decision, SeqId victim);

  // the waiting pass: vllm_admission.cpp
  void admit_waiting(Decision& decision);
  WaitingQueue& next_queue();
  bool pads_to_uniform_decode(const Record& record) const;
  std::int64_t match_prefix(SeqId id);
  bool admit(Decision& decision, WaitingQueue& queue, SeqId id, bool pads);
  std::int64_t blocks_to_admit(const Sequence& s, std::int64_t hit, std::int64_t tokens) const;
  void start_running(Decision& decision, SeqId id, std::int64_t hit);

  // KV from and for other engines: vllm_remote_kv.cpp
  bool await_kv(WaitingQueue& queue, SeqId id);
  void keep_kv(SeqId id);
  void stop_awaiting(SeqId id, std::int64_t computed);
  SeqId find(Ticket ticket) const;
  std::int64_t blocks_prompts_need() const;
  bool depends_on_others() const { return !awaiting_.empty() || !kept_.empty(); }

  // commit(): vllm_commit.cpp
  [[gnu::noinline]] void take_results(Record& record, SimTime done);
  void take_result(const Entry& entry, LoggedStep& logged, SimTime done);
  void take_tokens(SeqId id, std::int64_t tokens, bool stale, SimTime done);
  std::int64_t accepted_drafts(const Entry& entry, bool gone);
  void note_tokens(Sequence& s, std::int64_t tokens, SimTime done);
  void take_departed(SeqId id, SimTime done);
  void collect_finished_members(const Record& record, SimTime done);
  void propose_drafts(const Record& record);
  void finish(const Finished& finished);

  // vllm_log.cpp
  [[gnu::noinline]] void log_decision(Decision& decision);
  [[gnu::noinline]] void log_results(Record& record, SimTime done);

  bool speculates() const { return rarely(config_.speculative.method != SpeculativeMethod::kNone); }
  bool logs() const { return rarely(log_ != nullptr); }
  bool has_regions() const { return rarely(regions_.has_value()); }
  bool has_tiers() const { return rarely(tiers_ != nullptr); }
  bool stalls() const { return rarely(config_.preemption_mode == PreemptionMode::kStall); }
  std::int64_t blocks_for(std::int64_t tokens) const { return demand_.blocks(tokens); }
  SharedContext shared_context() const {
    return {pool_.shared_again() * config_.block_size, pool_.shared_blocks() * config_.block_size};
  }
  Record& slot_of(std::int64_t step) {
    return records_[static_cast<std::size_t>(step) & record_mask_];
  }
  /// Steps of a stretch get a record only when they need one.
  Record& record_of(std::int64_t step) {
    Record& record = slot_of(step);
    if (record.step != step) record.open(step, *lane_, lane_->step - (step_ - step));
    return record;
  }
  /// Whether a step only brings one more token of each member.
  bool brings_only_tokens(std::int64_t step) {
    const Record& record = slot_of(step);
    return record.step != step || (record.entries.empty() && record.departed.empty());
  }
  bool has_pipeline() const { return rarely(has_pipeline_); }
  DecodeGroup& group() { return lane_->group; }
  /// Whether it is in the group whose step is planned.
  bool is_member(SeqId id) const { return store_[id].grouped && &lanes_[store_[id].lane] == lane_; }
  BlockTable* table_of(SeqId id) { return pool_.caching() ? &tables_[id] : nullptr; }

  SchedulerConfig config_;
  SequenceSink& sink_;
  ScheduleLog* log_;
  Rng acceptance_;
  BlockSize block_size_;
  KvDemand demand_;
  std::int64_t watermark_blocks_;

  SequenceStore store_;
  std::vector<std::string> ids_;    ///< by SeqId; only under PRIORITY
  std::vector<BlockTable> tables_;  ///< by SeqId; only with prefix caching
  SessionContents sessions_;
  SequenceList running_;
  std::vector<SeqId> specials_;  ///< running, but not in the group; in running order
  WaitingQueue waiting_;
  WaitingQueue skipped_;  ///< passed over; looked at before those that wait
  BlockPool pool_;
  std::unique_ptr<OffloadTiers> tiers_;  ///< null: evicted content is forgotten
  std::optional<RegionTable> regions_;   ///< contiguous KV: the pool then counts single slots
  std::vector<DecodeLane> lanes_;        ///< one for each stage of the pipeline
  DecodeLane* lane_;                     ///< whose step is planned, or was last
  bool has_pipeline_;

  std::int64_t step_ = 0;        ///< plan() calls so far, extended ones included
  std::int64_t committed_ = 0;   ///< commit() calls so far, extended ones included
  std::vector<Record> records_;  ///< by step, modulo their number, a power of two
  std::size_t record_mask_;      ///< their number less one
  StepPlan plan_;
  std::vector<Finished> finished_;
  PrefixMatch match_;
  std::vector<SeqId> passed_over_;
  std::vector<SeqId> scratch_;
  bool rebuild_specials_ = false;  ///< during a step taken one by one
  std::int64_t slack_ = 0;         ///< slots of held blocks that hold no computed token yet
  std::int64_t held_ = 0;          ///< blocks that running sequences hold, shared ones each time
  std::int64_t promised_ = 0;      ///< kStall: blocks that they will hold in the end
  std::int64_t swap_used_ = 0;     ///< blocks in the swap space
  OffloadMatch offloaded_;         ///< of the request being admitted
  double load_s_ = 0;              ///< from the tiers, for the step being planned
  std::int64_t moved_in_ = 0, moved_out_ = 0, copied_ = 0;  ///< slots, for the step being planned
  std::uint32_t run_numbers_ = 0;
  std::int64_t stale_sequences_ = 0;
  bool finished_since_plan_ = false;
  bool stalled_ = false;  ///< nothing can be scheduled until another engine has read or sent KV
  std::unordered_map<Ticket, SeqId> awaiting_;  ///< sequences whose KV is to come
  std::unordered_map<Ticket, KeptBlocks> kept_;
  std::int64_t awaited_slots_ = 0;  ///< of their blocks, still to be filled
  std::uint32_t kv_numbers_ = 0;
  std::int64_t logged_steps_ = 0;
  SimTime now_;
  SchedulerCounters counters_;
};

}  // namespace servesim
