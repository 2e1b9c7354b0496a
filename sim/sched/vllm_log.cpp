// Writing every decision to the schedule log.
#include <algorithm>

#include "sched/vllm_scheduler.hpp"

namespace servesim {

void VllmScheduler::log_decision(Decision& decision) {
  LoggedStep& logged = decision.record.logged;
  logged.time = now_;
  logged.free_blocks = pool_.free();
  const std::vector<Entry>& entries = decision.record.entries;
  for (SeqId id = running_.head(); id != kNoSeq; id = store_[id].after) {
    const Sequence& s = store_[id];
    logged.running.push_back(s.ticket);
    if (s.grouped && !is_member(id)) continue;
    if (s.grouped) {
      logged.scheduled.emplace_back(s.ticket, 1);
      logged.tokens_out.emplace_back(s.ticket, 1);
      continue;
    }
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.seq == id; });
    if (entry == entries.end()) continue;
    logged.scheduled.emplace_back(s.ticket, entry->tokens);
    if (entry->drafts > 0) logged.drafts.emplace_back(s.ticket, entry->drafts);
  }
  scratch_.clear();
  skipped_.for_each([this](SeqId id) { scratch_.push_back(id); });
  waiting_.for_each([this](SeqId id) { scratch_.push_back(id); });
  if (config_.scheduling_policy == SchedulingPolicy::kPriority) {
    std::sort(scratch_.begin(), scratch_.end(), PriorityOrder(store_, ids_));
  }
  for (const SeqId id : scratch_) logged.waiting.push_back(store_[id].ticket);
}

void VllmScheduler::log_results(Record& record, SimTime done) {
  record.logged.step = ++logged_steps_;
  record.logged.done = done;
  record.logged.free_blocks_after = pool_.free();
  log_->on_step(record.logged);
  record.logged = LoggedStep{};
}

}  // namespace servesim
