#include "support/oracle/static_batching.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "support/oracle/arrivals.hpp"
#include "support/oracle/block_pool.hpp"
#include "support/oracle/oracle.hpp"
#include "support/oracle/recorder.hpp"

namespace servesim::oracle {

namespace {

struct Slot {
  std::size_t request = 0;
  std::int64_t prompt_len = 0;
  std::int64_t final_length = 0;
  std::int64_t computed = 0;
  std::int64_t outputs = 0;
  std::vector<BlockId> blocks;

  bool prefilled() const { return computed >= prompt_len; }
  bool finished() const { return prompt_len + outputs >= final_length; }
};

class StaticEngine {
 public:
  StaticEngine(const Config& config, const std::vector<Request>& requests, const Price& price)
      : config_(config),
        requests_(requests),
        price_(price),
        recorder_(requests),
        arrivals_(config, requests, recorder_),
        pool_(config.num_gpu_blocks) {}

  Result run() {
    while (true) {
      for (const std::size_t request : arrivals_.drain(now_ns_)) {
        waiting_.push_back(request);
      }
      StepPlan plan;
      if (batch_.empty() && !waiting_.empty()) {
        form_batch(plan);
      }
      if (!batch_.empty()) {
        step(plan);
      } else if (!arrivals_.empty()) {
        now_ns_ = arrivals_.next_ns();
      } else {
        return recorder_.finish(config_);
      }
    }
  }

 private:
  void form_batch(StepPlan& plan) {
    while (!waiting_.empty() && static_cast<std::int64_t>(batch_.size()) < config_.max_num_seqs) {
      const Request& request = requests_[waiting_.front()];
      Slot slot;
      slot.request = waiting_.front();
      slot.prompt_len = request.prompt_len;
      slot.final_length = final_length(config_, request);
      const std::int64_t tokens = slot.final_length - 1;  // the last one is never computed
      const std::int64_t count = blocks_of(config_, tokens);
      if (count > pool_.free_count()) {
        break;  // in order of arrival: nobody overtakes
      }
      slot.blocks = pool_.take(count);
      plan.admitted.push_back(slot.request);
      plan.prefix_hit_tokens[slot.request] = 0;
      batch_.push_back(std::move(slot));
      waiting_.pop_front();
    }
    ensure(!batch_.empty(), "a request that fits an empty pool was not admitted");
  }

  void step(StepPlan& plan) {
    const auto prefilled = [](const Slot& slot) { return slot.prefilled(); };
    if (std::all_of(batch_.begin(), batch_.end(), prefilled)) {
      plan_decode(plan);
    } else {
      plan_prefill(plan);
    }
    for (const Slot& slot : batch_) {
      plan.running.push_back(slot.request);
    }
    plan.waiting.assign(waiting_.begin(), waiting_.end());
    plan.free_blocks = pool_.free_count();
    check_integrity();

    const std::int64_t start_ns = now_ns_;
    now_ns_ += config_.host_ns + price_(work_of(plan), 0);
    const StepResults results = process(plan);
    check_integrity();
    recorder_.add_step(plan, results, start_ns, now_ns_);
  }

  void plan_prefill(StepPlan& plan) {
    std::int64_t budget = config_.max_num_batched_tokens;
    for (Slot& slot : batch_) {
      const std::int64_t tokens = std::min(slot.prompt_len - slot.computed, budget);
      if (tokens == 0) {
        continue;  // done already, or the budget is used up
      }
      const bool chunk = slot.computed + tokens < slot.prompt_len;
      plan.entries.push_back({slot.request, tokens, 0, slot.computed, chunk});
      slot.computed += tokens;
      budget -= tokens;
    }
  }

  void plan_decode(StepPlan& plan) {
    for (Slot& slot : batch_) {
      plan.entries.push_back({slot.request, 1, 0, slot.computed, false});
      // A finished sequence runs along on its last slot without getting longer.
      slot.computed = std::min(slot.computed + 1, slot.final_length - 1);
    }
  }

  StepResults process(const StepPlan& plan) {
    StepResults results;
    std::set<std::size_t> sampling;
    for (const StepEntry& entry : plan.entries) {
      if (!entry.prefill_chunk) {
        sampling.insert(entry.sequence);
      }
    }
    for (Slot& slot : batch_) {
      if (sampling.count(slot.request) == 0 || slot.finished()) {
        continue;
      }
      slot.outputs += 1;
      results.tokens_out[slot.request] = 1;
      if (slot.finished()) {
        results.finished.push_back(slot.request);
      }
    }
    release_when_all_finished();
    results.free_blocks_after = pool_.free_count();
    return results;
  }

  void release_when_all_finished() {
    const auto finished = [](const Slot& slot) { return slot.finished(); };
    if (!std::all_of(batch_.begin(), batch_.end(), finished)) {
      return;
    }
    for (const Slot& slot : batch_) {
      pool_.put({slot.blocks.rbegin(), slot.blocks.rend()});
    }
    batch_.clear();
  }

  void check_integrity() const {
    std::vector<const std::vector<BlockId>*> tables;
    for (const Slot& slot : batch_) {
      tables.push_back(&slot.blocks);
      const auto blocks = static_cast<std::int64_t>(slot.blocks.size());
      ensure(blocks_of(config_, slot.computed) <= blocks, "computed tokens without a slot");
    }
    pool_.check_integrity(tables);
  }

  const Config& config_;
  const std::vector<Request>& requests_;
  const Price& price_;
  Recorder recorder_;
  Arrivals arrivals_;
  BlockPool pool_;
  std::deque<std::size_t> waiting_;
  std::vector<Slot> batch_;
  std::int64_t now_ns_ = 0;
};

}  // namespace

Result run_static_batching(const Config& config, const std::vector<Request>& requests,
                           const Price& price) {
  return StaticEngine(config, requests, price).run();
}

}  // namespace servesim::oracle
