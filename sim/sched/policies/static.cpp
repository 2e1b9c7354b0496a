// Static batching: a batch is taken, prefilled, and decoded in lock-step until its last member has
// finished.
#include <algorithm>
#include <deque>

#include "core/error.hpp"
#include "sched/decode_group.hpp"
#include "sched/policies/policies.hpp"

namespace servesim {
namespace {

class StaticPolicy : public BatchPolicy {
 public:
  StaticPolicy(const SchedulerConfig& config, SequenceSink& sink)
      : config_(in_pool_units(config)),
        sink_(sink),
        demand_(BlockSize(config_.block_size), config_.layer_groups),
        group_(BlockSize(config_.block_size)) {}

  void add(const NewSequence& sequence) override {
    waiting_.push_back(sequence);
    NewSequence& kept = waiting_.back();
    kept.max_tokens = std::min(sequence.max_tokens, config_.max_model_len - sequence.prompt);
    kept.id = {};  // views of the caller's buffers, not needed here
    kept.hash_ids = {};
  }
  const StepPlan& plan(SimTime now) override;
  void extend(std::int64_t steps, std::int64_t committed, std::int64_t blocks,
              SimTime last_done) override;
  void commit(SimTime done) override;
  bool live() const override { return has_unfinished(); }
  bool has_unfinished() const override { return !batch_.empty() || !waiting_.empty(); }
  std::int64_t waiting() const override { return std::ssize(waiting_); }
  bool arrival_matters() const override { return false; }
  int batches_in_flight() const override { return 1; }
  KvUsage kv_usage() override {
    const std::int64_t allocated = batch_blocks_ * config_.block_size;
    return {allocated, internal_, allocated - internal_ - filled_, unusable()};
  }
  std::int64_t block_size() const override { return config_.block_size; }
  const SchedulerCounters& counters() const override { return counters_; }
  void check_integrity() const override;

 private:
  struct Member {
    NewSequence request;
    std::int64_t prefilled = 0;
    SequenceOutcome outcome;
  };

  std::int64_t pool_blocks() const { return config_.num_gpu_blocks - 1; }
  /// What a member holds from the start of its batch to the end: nobody is ever preempted, so a
  /// region must do for its end.
  std::int64_t blocks_of(const NewSequence& s) const {
    const std::int64_t slots = s.prompt + s.max_tokens - 1;
    if (config_.region_rule == nullptr) return demand_.blocks(slots);
    return config_.region_rule(slots, slots, std::min(config_.max_model_len, pool_blocks()));
  }
  /// Regions of a batch lie side by side; what is left may be too little for one more.
  std::int64_t unusable() const {
    if (config_.region_rule == nullptr || waiting_.empty()) return 0;
    const std::int64_t left = pool_blocks() - batch_blocks_;
    return left < blocks_of(waiting_.front()) ? left : 0;
  }
  /// The step in which this member of the batch gets its last token.
  std::int64_t last_step(std::size_t member) const {
    return first_decode_step_ + batch_[member].request.max_tokens - 2;
  }
  /// Slots not yet filled of the blocks that `tokens` tokens take.
  std::int64_t unfilled(std::int64_t tokens) const {
    return demand_.blocks(tokens) * config_.block_size - demand_.slots(tokens);
  }
  void form_batch(SimTime now);
  void plan_prefill();
  void plan_decode();
  void commit_prefill(SimTime done);
  void commit_decode(SimTime done);
  void pass_edges();
  void finish(Member& member, SimTime done);

  SchedulerConfig config_;
  SequenceSink& sink_;
  KvDemand demand_;
  std::deque<NewSequence> waiting_;
  std::vector<Member> batch_;
  DecodeGroup group_;                   ///< members that still generate
  std::vector<std::size_t> by_length_;  ///< those with a decode step, shortest output first
  std::size_t next_finish_ = 0;         ///< index into by_length_
  std::vector<std::int64_t> edges_;     ///< bases of members that outgrow their windows, last first
  std::int64_t batch_blocks_ = 0;
  std::int64_t filled_ = 0;          ///< slots
  std::int64_t internal_ = 0;        ///< slots of begun blocks that are still to be filled
  std::int64_t frozen_context_ = 0;  ///< computed tokens of the members that have finished
  std::size_t next_prefill_ = 0;     ///< first member whose prompt is not computed
  std::size_t first_in_step_ = 0;    ///< first member of the current prefill step
  std::int64_t step_ = 0;
  std::int64_t first_decode_step_ = 0;
  StepPlan plan_;
  SchedulerCounters counters_;
};

void StaticPolicy::form_batch(SimTime now) {
  while (!waiting_.empty() && std::ssize(batch_) < config_.max_num_seqs) {
    const std::int64_t blocks = blocks_of(waiting_.front());
    if (batch_blocks_ + blocks > pool_blocks()) break;
    batch_blocks_ += blocks;
    batch_.push_back({waiting_.front(), 0, {}});
    batch_.back().outcome.scheduled = now;
    waiting_.pop_front();
  }
  next_prefill_ = 0;
  frozen_context_ = 0;
}

const StepPlan& StaticPolicy::plan(SimTime now) {
  ++step_;
  plan_ = StepPlan{};
  if (batch_.empty()) form_batch(now);
  if (next_prefill_ < batch_.size()) {
    plan_prefill();
  } else if (!batch_.empty()) {
    plan_decode();
  }
  plan_.kv = kv_usage();
  return plan_;
}

void StaticPolicy::plan_prefill() {
  first_in_step_ = next_prefill_;
  std::int64_t budget = config_.max_num_batched_tokens;
  while (budget > 0 && next_prefill_ < batch_.size()) {
    Member& member = batch_[next_prefill_];
    const std::int64_t tokens = std::min(budget, member.request.prompt - member.prefilled);
    plan_.chunks.push_back({tokens, member.prefilled});
    const std::int64_t prefilled = member.prefilled + tokens;
    internal_ += unfilled(prefilled) - unfilled(member.prefilled);
    filled_ += demand_.slots(prefilled) - demand_.slots(member.prefilled);
    member.prefilled = prefilled;
    budget -= tokens;
    plan_.tokens += tokens;
    if (member.prefilled < member.request.prompt) break;
    ++plan_.sampled;
    ++next_prefill_;
  }
}

/// Every slot of the batch computes a token, the finished ones too: that is what lock-step costs.
void StaticPolicy::plan_decode() {
  const bool first = step_ == first_decode_step_;
  plan_.decode_seqs = plan_.decode_tokens = plan_.sampled = plan_.tokens = std::ssize(batch_);
  plan_.decode_context = frozen_context_ + group_.context(step_);
  plan_.gap_count = first ? 0 : group_.count();
  const std::int64_t begun = group_.growth(step_);
  internal_ += begun * config_.block_size - group_.slots();
  filled_ += group_.slots();
  if (first) return;
  std::int64_t until = last_step(by_length_[next_finish_]);
  if (!edges_.empty()) until = std::min(until, demand_.edge() - edges_.back());
  Stretch& stretch = plan_.stretch;
  stretch.steps = until - step_;
  stretch.seqs = plan_.decode_seqs;
  stretch.gap_count = stretch.context_growth = group_.count();
  stretch.context = frozen_context_ + group_.context(step_ + 1);
  stretch.slot_growth = group_.slots();
  stretch.block_growth = group_.growth_table();
  stretch.growth_phase = static_cast<std::int64_t>(group_.phase(step_));
  stretch.growth_was_reserved = true;
}

void StaticPolicy::extend(std::int64_t steps, std::int64_t, std::int64_t blocks, SimTime) {
  internal_ += blocks * config_.block_size - steps * group_.slots();
  filled_ += steps * group_.slots();
  step_ += steps;
}

void StaticPolicy::commit(SimTime done) {
  if (plan_.decode_seqs > 0) {
    commit_decode(done);
  } else {
    commit_prefill(done);
  }
  const bool over = next_prefill_ == batch_.size() && group_.count() == 0;
  if (!over) return;
  batch_.clear();
  batch_blocks_ = filled_ = internal_ = 0;
}

void StaticPolicy::commit_prefill(SimTime done) {
  for (std::size_t i = first_in_step_; i < next_prefill_; ++i) {
    Member& member = batch_[i];
    member.outcome.first_token = done;
    if (member.request.max_tokens == 1) finish(member, done);
  }
  if (next_prefill_ < batch_.size()) return;
  first_decode_step_ = step_ + 1;
  by_length_.clear();
  edges_.clear();
  next_finish_ = 0;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    const NewSequence& request = batch_[i].request;
    if (request.max_tokens == 1) {
      frozen_context_ += request.prompt;
    } else {
      group_.join(request.prompt - step_, demand_.growth(request.prompt));
      by_length_.push_back(i);
      const bool outgrows = request.prompt + request.max_tokens - 1 > demand_.edge();
      if (outgrows && request.prompt < demand_.edge()) edges_.push_back(request.prompt - step_);
    }
  }
  const auto shorter = [this](std::size_t a, std::size_t b) {
    return batch_[a].request.max_tokens < batch_[b].request.max_tokens;
  };
  std::stable_sort(by_length_.begin(), by_length_.end(), shorter);
  std::sort(edges_.begin(), edges_.end());
}

void StaticPolicy::commit_decode(SimTime done) {
  if (step_ == first_decode_step_) {
    for (const Member& member : batch_) {
      if (member.request.max_tokens > 1) sink_.on_token_gaps(done - member.outcome.first_token, 1);
    }
  }
  while (group_.count() > 0 && last_step(by_length_[next_finish_]) == step_) {
    Member& member = batch_[by_length_[next_finish_++]];
    const std::int64_t total = member.request.prompt + member.request.max_tokens - 1;
    group_.leave(total - step_, demand_.growth(total - 1));
    frozen_context_ += total;
    finish(member, done);
  }
  pass_edges();
}

/// Members whose windows are full from here on grow less.
void StaticPolicy::pass_edges() {
  for (; !edges_.empty() && edges_.back() + step_ == demand_.edge(); edges_.pop_back()) {
    group_.leave(edges_.back(), demand_.growth(demand_.edge() - 1));
    group_.join(edges_.back(), demand_.growth(demand_.edge()));
  }
}

void StaticPolicy::finish(Member& member, SimTime done) {
  member.outcome.last_token = done;
  member.outcome.outputs = member.request.max_tokens;
  sink_.on_finished(member.request.ticket, member.outcome);
}

void StaticPolicy::check_integrity() const {
  const std::int64_t reserved = batch_blocks_ * config_.block_size - internal_ - filled_;
  if (batch_blocks_ > pool_blocks() || internal_ < 0 || reserved < 0) {
    throw std::logic_error("StaticPolicy: the blocks of the batch do not add up");
  }
}

}  // namespace

std::unique_ptr<BatchPolicy> make_static(const SchedulerConfig& config, SequenceSink& sink,
                                         ScheduleLog* log, std::uint64_t) {
  if (log != nullptr)
    throw InputError("policy 'static' writes no schedule log; 'continuous' and 'chunked' do");
  return std::make_unique<StaticPolicy>(config, sink);
}

}  // namespace servesim
