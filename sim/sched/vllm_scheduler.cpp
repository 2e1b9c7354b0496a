#include "sched/vllm_scheduler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <tuple>

namespace servesim {

VllmScheduler::VllmScheduler(const SchedulerConfig& config, SequenceSink& sink, ScheduleLog* log,
                             std::uint64_t seed)
    : config_(in_pool_units(config)),
      sink_(sink),
      log_(log),
      acceptance_(seed, "sched.acceptance"),
      block_size_(config_.block_size),
      demand_(block_size_, config_.layer_groups),
      watermark_blocks_(static_cast<std::int64_t>(
          std::floor(config_.watermark * static_cast<double>(config_.num_gpu_blocks)))),
      waiting_(config.scheduling_policy, store_, ids_),
      skipped_(config.scheduling_policy, store_, ids_),
      pool_(config_.num_gpu_blocks - 1, block_size_, config_.enable_prefix_caching),
      lanes_(static_cast<std::size_t>(config_.pipeline_parallel), DecodeLane(block_size_, store_)),
      lane_(lanes_.data()),
      has_pipeline_(lanes_.size() > 1),
      records_(std::bit_ceil(std::max<std::size_t>(lanes_.size(), 2))),
      record_mask_(records_.size() - 1) {
  if (config_.region_rule != nullptr) {
    regions_.emplace(config_.region_rule, pool_.usable(), config_.max_model_len);
  }
  if (!config_.offload.tiers.empty()) {
    tiers_ = std::make_unique<OffloadTiers>(config_.offload, pool_.contents(), counters_.offload);
    pool_.tell(tiers_.get());
  }
  plan_.stretch.block_growth = group().growth_table();
  plan_.stretch.growth_was_reserved = regions_.has_value();
  plan_.transfer_overlaps = config_.moves.overlaps_compute;
}

void VllmScheduler::Record::open(std::int64_t its_step, DecodeLane& its_lane,
                                 std::int64_t its_lane_step) {
  step = its_step;
  lane = &its_lane;
  lane_step = its_lane_step;
  group_count = 0;
  entries.clear();
  departed.clear();
}

void VllmScheduler::add(const NewSequence& sequence) {
  const SeqId id = store_.create();
  Sequence& s = store_[id];
  s.ticket = sequence.ticket;
  s.index = sequence.index;
  s.priority = sequence.priority;
  s.arrival = sequence.arrival;
  s.prompt = sequence.prompt;
  s.max_tokens = sequence.max_tokens;
  s.kv_role = sequence.kv_role;
  s.target = std::min(sequence.max_tokens, config_.max_model_len - sequence.prompt);
  if (rarely(config_.scheduling_policy == SchedulingPolicy::kPriority)) {
    if (ids_.size() <= id) ids_.resize(id + 1);
    ids_[id] = sequence.id;
  }
  if (pool_.caching()) open_content(id, sequence);
  waiting_.push_back(id);
  stalled_ = false;
}

const StepPlan& VllmScheduler::plan(SimTime now) {
  ++step_;
  if (has_pipeline()) choose_lane();
  ++lane_->step;
  lane_->planned_as = step_;
  now_ = now;
  if (has_tiers()) tiers_->set_now(now);
  finished_since_plan_ = false;
  stalled_ = false;
  Record& record = slot_of(step_);
  record.open(step_, *lane_, lane_->step);
  const bool preempted = !plan_plain_decodes(record) && plan_in_full(record);
  fill_in_kv_usage();
  plan_.shared = shared_context();
  plan_stretch(record, preempted);
  return plan_;
}

/// Whether anyone had to give way.
bool VllmScheduler::plan_in_full(Record& record) {
  Decision decision{record, config_.max_num_batched_tokens};
  if (config_.async_scheduling) retire_predicted();
  if (!schedule_running_fast(decision)) schedule_running_one_by_one(decision);
  record.group_count = group().count();
  if (!decision.preempted) admit_waiting(decision);
  if (logs()) log_decision(decision);
  fill_plan(record);
  advance(record);
  if (has_pipeline()) hold_lane(record);
  price_moves();
  stalled_ = plan_.tokens == 0 && running_.size() == 0 && depends_on_others();
  return decision.preempted;
}

/// The lane whose results came last; when that has no members left, any that is free. No two can be
/// waiting for their next step: between two steps that are scheduled, the results of at most one
/// are taken in.
void VllmScheduler::choose_lane() {
  const auto next =
      std::max_element(lanes_.begin(), lanes_.end(), [](const DecodeLane& a, const DecodeLane& b) {
        return std::tuple(!a.busy, a.group.count()) < std::tuple(!b.busy, b.group.count());
      });
  if (next->busy) throw std::logic_error("a step is planned while every stage has one");
  lane_ = &*next;
}

/// No other step may use the lane before the results of this one, if it has members in the step.
void VllmScheduler::hold_lane(Record& record) {
  lane_->busy = group().count() > 0;
  if (!lane_->busy) record.lane = nullptr;
}

/// The most frequent decision, taken without looking further: nobody waits, everybody who runs is a
/// member or at its end, all have room. False when it is not that.
bool VllmScheduler::plan_plain_decodes(Record& record) {
  if (!specials_.empty() || !waiting_.empty() || !skipped_.empty() || logs()) return false;
  if (config_.async_scheduling) retire_predicted();
  const std::int64_t count = group().count();
  if (count == 0 || count > config_.max_num_batched_tokens || !specials_only_end()) return false;
  const std::int64_t growth = group().growth(lane_->step);
  if (growth > pool_.free()) return false;
  take_from_pool(growth);
  slack_ -= group().slots();
  lane_->busy = has_pipeline();
  record.group_count = count;
  set_group_plan(count);
  plan_.transfer = SimTime(0);
  return true;
}

/// Whether those outside the group only wait for the last token that is in flight.
bool VllmScheduler::specials_only_end() const {
  for (const SeqId id : specials_) {
    const Sequence& s = store_[id];
    if (s.outputs + s.placeholders < s.target) return false;
  }
  return true;
}

/// The plan of a step in which only the group is scheduled.
void VllmScheduler::set_group_plan(std::int64_t count) {
  plan_.chunks.clear();
  plan_.pushes_kv = false;
  plan_.decode_seqs = plan_.decode_tokens = plan_.sampled = plan_.tokens = count;
  plan_.gap_count = has_pipeline() ? 0 : count;
  plan_.decode_context = group().context(lane_->step);
}

/// A member whose last token is in flight stays in the running list, with its blocks, until that
/// token is processed, but is not scheduled again (section 3, rule 1).
void VllmScheduler::retire_predicted() {
  const std::int64_t last = lane_->step - 1;
  CompletionWheel& completions = lane_->completions;
  for (SeqId id = completions.due(last); id != kNoSeq; id = completions.due(last)) {
    leave_group(id, last);
    make_special(id);
  }
}

void VllmScheduler::make_special(SeqId id) {
  const auto later = [this](SeqId a, SeqId b) {
    return store_[a].run_number < store_[b].run_number;
  };
  specials_.insert(std::upper_bound(specials_.begin(), specials_.end(), id, later), id);
}

void VllmScheduler::drop_special(SeqId id) {
  if (!specials_.empty() && specials_.back() == id) {
    specials_.pop_back();
  } else {
    std::erase(specials_, id);
  }
}

void VllmScheduler::advance(Record& record) {
  slack_ -= group().slots();
  for (Entry& entry : record.entries) {
    Sequence& s = store_[entry.seq];
    counters_.recomputed_tokens += std::clamp<std::int64_t>(s.lost - s.computed, 0, entry.tokens);
    fill_slots(s.computed, s.computed + entry.tokens);
    s.computed += entry.tokens;
    s.inflight += entry.tokens;
    if (rarely(s.kv_role == KvRole::kPush)) {
      plan_.pushes_kv = true;
      sink_.on_kv_planned(s.ticket, s.computed);
    }
    s.prefill_chunk = !entry.samples;
    if (!entry.samples) continue;
    if (config_.async_scheduling) {
      s.placeholders += 1 + entry.drafts;
      s.drafts = config_.speculative.num_speculative_tokens;
    }
    if (!speculates()) join_group(entry);
  }
  if (rarely(rebuild_specials_)) {
    rebuild_specials_ = false;
    specials_.clear();
    for (SeqId id = running_.head(); id != kNoSeq; id = store_[id].after) {
      if (!store_[id].grouped) specials_.push_back(id);
    }
  }
}

void VllmScheduler::join_group(Entry& entry) {
  Sequence& s = store_[entry.seq];
  const std::int64_t step = lane_->step;
  const std::int64_t outputs_scheduled =
      s.outputs + (config_.async_scheduling ? s.placeholders : 1);
  s.last_step = s.due_step = step + s.target - outputs_scheduled;
  if (has_regions()) {
    const std::int64_t room = regions_->size(entry.seq) - s.computed;
    if (room == 0 && s.last_step > step) return;  // the next token needs a larger region
    s.due_step = std::min(s.last_step, step + room);
  }
  s.growth = demand_.growth(s.computed);
  if (s.computed < demand_.edge()) {  // beyond it, it grows less
    s.due_step = std::min(s.due_step, step + (demand_.edge() - s.computed));
  }
  s.group_base = s.computed - step;
  s.lane = static_cast<std::uint32_t>(lane_ - lanes_.data());
  s.grouped = true;
  s.inflight -= entry.tokens;
  entry.joined = true;
  group().join(s.group_base, s.growth);
  lane_->completions.put(entry.seq);
  if (mostly(!rebuild_specials_)) drop_special(entry.seq);
}

/// The member gets no token of its lane's steps after `through`. The token of step `through` itself
/// is in flight with asynchronous scheduling, and when its lane is busy.
void VllmScheduler::leave_group(SeqId id, std::int64_t through) {
  Sequence& s = store_[id];
  DecodeLane& lane = lanes_[s.lane];
  s.computed = s.group_base + through;
  s.outputs = s.target - (s.last_step - through);
  s.blocks = blocks_for(s.computed);
  s.grouped = false;
  s.placeholders = 0;
  std::int64_t registered = s.computed;
  if (config_.async_scheduling || lane.busy) {
    --s.outputs;
    ++s.inflight;
    if (config_.async_scheduling) {
      --registered;  // only what is known is findable, which it will be when its token is
      s.placeholders = 1;
    }
    record_of(lane.planned_as - lane.step + through).departed.push_back(id);
  } else {
    s.last_token = lane.last_done;
  }
  lane.group.leave(s.group_base, s.growth);
  lane.completions.take(id);
  if (BlockTable* table = table_of(id)) pool_.register_blocks(*table, block_size_.full(registered));
}

/// During plan(): the last step that its lane has decided.
void VllmScheduler::leave_group_after_last_step(SeqId id) {
  const DecodeLane& lane = lanes_[store_[id].lane];
  leave_group(id, &lane == lane_ ? lane.step - 1 : lane.step);
}

void VllmScheduler::fill_plan(const Record& record) {
  set_group_plan(record.group_count);
  for (const Entry& entry : record.entries) {
    plan_.tokens += entry.tokens;
    if (entry.samples) plan_.sampled += 1 + entry.drafts;
    if (entry.samples && entry.tokens == 1 + entry.drafts) {
      ++plan_.decode_seqs;
      plan_.decode_tokens += entry.tokens;
      plan_.decode_context += entry.context;
    } else {
      plan_.chunks.push_back({entry.tokens, entry.context});
    }
  }
}

/// The steps that can be planned along with this one, if any.
void VllmScheduler::plan_stretch(const Record& record, bool preempted) {
  Stretch& stretch = plan_.stretch;
  stretch.steps = 0;
  plan_.results = plan_.results_before = StepResults::kTokens;
  if (preempted || stale_sequences_ > 0 || group().count() == 0 || logs() || has_pipeline() ||
      !results_decide_nothing(record)) {
    return;
  }
  stretch.steps = horizon() - 1;
  stretch.seqs = stretch.gap_count = stretch.context_growth = group().count();
  stretch.context = group().context(lane_->step + 1);
  stretch.slot_growth = group().slots();
  stretch.growth_phase = static_cast<std::int64_t>(group().phase(lane_->step));
}

/// Whether the next decision is the same whatever this step and the one before still bring, which
/// it enters in the plan. Neither first tokens of members nor the ends of requests change anything
/// unless somebody waits: for what is left of the next step's budget, or for the room of those who
/// end.
bool VllmScheduler::results_decide_nothing(const Record& record) {
  const auto brings_first_tokens_only = [](const Record& of) {
    return std::all_of(of.entries.begin(), of.entries.end(),
                       [](const Entry& entry) { return entry.joined; });
  };
  const bool nobody_waits = waiting_.empty() && skipped_.empty();
  if (!record.entries.empty()) {
    if (!nobody_waits || !brings_first_tokens_only(record)) return false;
    plan_.results = StepResults::kFirstTokens;
  }
  const bool all_known = committed_ == step_ - 1;
  if (!all_known && !brings_only_tokens(step_ - 1)) {
    if (!brings_first_tokens_only(record_of(step_ - 1))) return false;
    plan_.results_before = StepResults::kFirstTokens;
  }
  if (specials_.empty()) return true;
  if (all_known || !nobody_waits || !specials_only_end()) return false;
  plan_.results_before = StepResults::kEnds;
  return true;
}

/// For how many steps from this one on everybody gets a token and no block is missing.
std::int64_t VllmScheduler::horizon() {
  const std::int64_t until_finish = lane_->completions.next(lane_->step) - lane_->step + 1;
  // Each member takes its growth at most once per block_size steps begun: mostly there is no need
  // to count.
  const std::int64_t most_blocks = group().slots() * (block_size_.full(until_finish) + 1);
  if (most_blocks <= pool_.free()) return until_finish;
  return std::min(until_finish, 1 + group().steps_within(pool_.free(), lane_->step));
}

void VllmScheduler::extend(std::int64_t steps, std::int64_t committed, std::int64_t blocks,
                           SimTime last_done) {
  if (has_tiers()) tiers_->set_now(last_done);
  take_from_pool(blocks);
  slack_ -= steps * group().slots();
  step_ += steps;
  committed_ += steps - committed;
  lane_->step += steps;
  lane_->planned_as = step_;
  lane_->last_done = last_done;
}

bool VllmScheduler::arrival_matters() const {
  if (!specials_.empty()) return true;  // whose ends may let it run
  if (running_.size() >= config_.max_num_seqs) return false;
  if (config_.scheduling_policy == SchedulingPolicy::kPriority) return true;
  return waiting_.empty() && skipped_.empty();
}

}  // namespace servesim
