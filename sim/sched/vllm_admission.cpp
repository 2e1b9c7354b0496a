// The second pass of a step: who waits is admitted (sections 4, 6 and 7 of the semantics).
#include <algorithm>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

void VllmScheduler::admit_waiting(Decision& decision) {
  if (waiting_.empty() && skipped_.empty()) return;
  const bool pads = pads_to_uniform_decode(decision.record);
  passed_over_.clear();
  while ((!waiting_.empty() || !skipped_.empty()) && decision.budget > 0) {
    if (running_.size() >= config_.max_num_seqs) break;
    WaitingQueue& queue = next_queue();
    const SeqId head = queue.front();
    if (rarely(store_[head].stale > 0)) {  // an output of it is still in flight
      queue.remove(head);
      passed_over_.push_back(head);
      continue;
    }
    if (!admit(decision, queue, head, pads)) break;
  }
  for (auto id = passed_over_.rbegin(); id != passed_over_.rend(); ++id) {
    store_[*id].skipped = true;
    skipped_.push_front(*id);
  }
}

WaitingQueue& VllmScheduler::next_queue() {
  if (mostly(skipped_.empty())) return waiting_;
  if (waiting_.empty() || config_.scheduling_policy == SchedulingPolicy::kFcfs) return skipped_;
  return PriorityOrder(store_, ids_)(skipped_.front(), waiting_.front()) ? skipped_ : waiting_;
}

/// Whether a sequence with one token to compute gets dummy drafts, to have the shape of the decodes
/// it joins: running sequences are scheduled, and none of them was a prefill chunk in the step
/// before.
bool VllmScheduler::pads_to_uniform_decode(const Record& record) const {
  if (!speculates() || record.entries.empty()) return false;
  return std::none_of(record.entries.begin(), record.entries.end(),
                      [this](const Entry& entry) { return store_[entry.seq].prefill_chunk; });
}

std::int64_t VllmScheduler::match_prefix(SeqId id) {
  match_.blocks = 0;
  match_.evictable = 0;
  if (rarely(store_[id].kv_loaded)) {  // holds its blocks already
    match_.blocks = store_[id].blocks;
    return store_[id].computed;
  }
  BlockTable* table = table_of(id);
  if (table == nullptr || table->path.empty()) return 0;
  // The last token is always computed: something must be there to sample from.
  pool_.match(*table, block_size_.full(store_[id].num_tokens() - 1), match_);
  if (config_.speculative.method == SpeculativeMethod::kEagle) pool_.drop_last_block(match_);
  return match_.blocks * config_.block_size;
}

/// False when `id`, the head of `queue`, must wait, and so all behind it.
bool VllmScheduler::admit(Decision& decision, WaitingQueue& queue, SeqId id, bool pads) {
  Sequence& s = store_[id];
  if (rarely(s.kv_role == KvRole::kReceive)) return await_kv(queue, id);
  const std::int64_t cached = match_prefix(id);
  // The last token is always computed: something must be there to sample from.
  std::int64_t hit = std::max(cached, std::min(s.swapped, s.num_tokens() - 1));
  if (has_tiers() && s.swapped == 0) hit = match_tiers(id, cached);
  std::int64_t tokens = s.num_tokens() - hit;
  std::int64_t drafts = 0;
  if (pads && tokens == 1) {
    drafts = config_.speculative.num_speculative_tokens;
    tokens += drafts;
    if (tokens > decision.budget || hit + tokens > config_.max_model_len) return false;
  }
  const std::int64_t threshold = config_.long_prefill_token_threshold;
  if (0 < threshold && threshold < tokens) {
    tokens = threshold;
    drafts = std::min(drafts, threshold - 1);
  }
  if (!config_.enable_chunked_prefill && tokens > decision.budget) return false;
  tokens = std::min(tokens, decision.budget);

  const std::int64_t blocks = blocks_to_admit(s, hit, tokens);
  if (blocks < 0) return false;
  if (has_regions() && !place_region(id)) return false;
  queue.remove(id);
  if (BlockTable* table = table_of(id); table != nullptr && match_.blocks > 0 && !s.kv_loaded)
    pool_.touch(*table, match_);
  held_ += match_.blocks - s.blocks;  // KV that came from elsewhere is held already
  s.blocks = match_.blocks;
  s.computed = hit;
  bring_in(s, cached, hit);
  take_blocks(id, blocks, std::min(hit + tokens, s.num_tokens()));
  start_running(decision, id, cached);
  schedule(decision, id, tokens, drafts);
  return true;
}

/// New blocks that admitting `s` takes now, or -1 when they, or with the reservation on all that
/// its known tokens need, do not fit.
std::int64_t VllmScheduler::blocks_to_admit(const Sequence& s, std::int64_t hit,
                                            std::int64_t tokens) const {
  const std::int64_t watermark = running_.empty() ? 0 : watermark_blocks_;
  const std::int64_t room = pool_.free() - match_.evictable - watermark;
  const auto missing = [&](std::int64_t upto) {
    return std::max<std::int64_t>(blocks_for(std::min(upto, config_.max_model_len)) - match_.blocks,
                                  0);
  };
  if (config_.scheduler_reserve_full_isl && missing(s.num_tokens()) > room) return -1;
  if (stalls()) {
    const std::int64_t to_the_end = last_blocks(s) - match_.blocks;
    if (to_the_end > room - (promised_ - held_)) return -1;
  }
  const std::int64_t blocks = missing(hit + tokens + config_.lookahead());
  return blocks > room ? -1 : blocks;
}

void VllmScheduler::start_running(Decision& decision, SeqId id, std::int64_t hit) {
  Sequence& s = store_[id];
  const bool resumes = rarely(s.status == SequenceStatus::kPreempted);
  if (resumes) sink_.on_resumed(s.ticket, now_);
  if (rarely(s.kv_loaded)) {  // its lookup is counted already
    s.kv_loaded = false;
    s.scheduled = now_;
  } else if (!resumes) {
    s.scheduled = now_;
    s.prefix_hit_tokens = hit;
    counters_.prefix_hit_tokens += hit;
    counters_.prefix_queried_tokens += s.num_tokens();
  }
  s.status = SequenceStatus::kRunning;
  s.skipped = false;
  s.run_number = ++run_numbers_;
  if (stalls()) promised_ += last_blocks(s);
  running_.push_back(store_, id);
  if (mostly(!rebuild_specials_)) specials_.push_back(id);
  if (logs()) {
    LoggedStep& logged = decision.record.logged;
    (resumes ? logged.resumed : logged.admitted).push_back(s.ticket);
    logged.prefix_hit_tokens.emplace_back(s.ticket, hit);
  }
}

}  // namespace servesim
