// The engine loops around the scheduler: synchronous, and with two batches in flight.
#include <algorithm>
#include <deque>
#include <stdexcept>
#include <vector>

#include "support/oracle/arrivals.hpp"
#include "support/oracle/oracle.hpp"
#include "support/oracle/recorder.hpp"
#include "support/oracle/scheduler.hpp"
#include "support/oracle/static_batching.hpp"

namespace servesim::oracle {

namespace {

constexpr std::size_t kBatchesInFlight = 2;

struct Batch {
  StepPlan plan;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

class Engine {
 public:
  Engine(const Config& config, const std::vector<Request>& requests, const Price& price)
      : config_(config),
        price_(price),
        recorder_(requests),
        arrivals_(config, requests, recorder_),
        scheduler_(config, requests),
        num_requests_(requests.size()) {}

  Result run() {
    if (config_.async_scheduling) {
      run_async();
    } else if (config_.pipeline_parallel > 1) {
      run_pipeline();
    } else {
      run_sync();
    }
    for (std::size_t i = 0; i < num_requests_; ++i) {
      recorder_.outcome(i).preemptions = scheduler_.sequence(i).preemptions;
      recorder_.outcome(i).recomputed_tokens = scheduler_.sequence(i).recomputed_tokens;
    }
    return recorder_.finish(config_);
  }

 private:
  void run_sync() {
    while (true) {
      drain();
      if (!scheduler_.is_live()) {
        if (arrivals_.empty()) {
          return;
        }
        now_ns_ = arrivals_.next_ns();
        continue;
      }
      const Batch batch = schedule();
      process(batch);
      // Nothing could run: only an arrival, or what this call itself changed, can help.
      if (batch.plan.entries.empty() && scheduler_.has_unfinished() && !arrivals_.empty()) {
        now_ns_ = std::max(now_ns_, arrivals_.next_ns());
      }
    }
  }

  void run_async() {
    std::deque<Batch> in_flight;
    while (true) {
      drain();
      if (scheduler_.is_live()) {
        in_flight.push_back(schedule());
        const bool did_something = !in_flight.back().plan.entries.empty();
        if (in_flight.size() < kBatchesInFlight && (did_something || scheduler_.has_unfinished())) {
          continue;
        }
      }
      if (!in_flight.empty()) {
        process(in_flight.front());
        in_flight.pop_front();
      } else if (!arrivals_.empty()) {
        now_ns_ = arrivals_.next_ns();
      } else {
        return;
      }
    }
  }

  /// vLLM's step_with_batch_queue(): another batch follows at once while there is a stage for it,
  /// this one was not empty and the oldest is not done.
  void run_pipeline() {
    std::deque<Batch> in_flight;
    const auto stages = static_cast<std::size_t>(config_.pipeline_parallel);
    stage_free_ns_.assign(stages, 0);
    while (true) {
      drain();
      if (scheduler_.is_live()) {
        in_flight.push_back(schedule());
        const bool more = in_flight.size() < stages && !in_flight.back().plan.entries.empty() &&
                          in_flight.front().end_ns > now_ns_;
        if (more) {
          continue;
        }
      }
      if (!in_flight.empty()) {
        process(in_flight.front());
        in_flight.pop_front();
      } else if (!arrivals_.empty()) {
        now_ns_ = arrivals_.next_ns();
      } else {
        return;
      }
    }
  }

  /// When a batch of `ns` in all, the same on each stage and what is left over on the last, is
  /// through.
  std::int64_t through_stages(std::int64_t ns) {
    const std::int64_t part = ns / config_.pipeline_parallel;
    std::int64_t at = now_ns_ + config_.host_ns;
    for (std::int64_t& free : stage_free_ns_) {
      const bool last = &free == &stage_free_ns_.back();
      at = std::max(at, free) + (last ? ns - part * (config_.pipeline_parallel - 1) : part);
      free = at;
    }
    return at;
  }

  void drain() {
    for (const std::size_t request : arrivals_.drain(now_ns_)) {
      scheduler_.add(request);
    }
  }

  Batch schedule() {
    Batch batch;
    batch.start_ns = now_ns_;
    batch.plan = scheduler_.schedule();
    scheduler_.check_integrity();
    check_plan(batch.plan);
    // An empty step takes no time, but its results still wait for the batch before it.
    batch.end_ns = std::max(device_free_ns_, now_ns_);
    if (!batch.plan.entries.empty()) {
      const std::int64_t price_ns = price_(work_of(batch.plan), batch.plan.shared_reads);
      batch.end_ns = stage_free_ns_.empty()
                         ? std::max(device_free_ns_, now_ns_ + config_.host_ns) + price_ns
                         : through_stages(price_ns);
    }
    device_free_ns_ = batch.end_ns;
    return batch;
  }

  void process(const Batch& batch) {
    now_ns_ = std::max(now_ns_, batch.end_ns);
    const StepResults results = scheduler_.update(batch.plan);
    scheduler_.check_integrity();
    recorder_.add_step(batch.plan, results, batch.start_ns, now_ns_);
  }

  void check_plan(const StepPlan& plan) const {
    std::int64_t tokens = 0;
    for (const StepEntry& entry : plan.entries) {
      ensure(entry.tokens > 0, "a step entry has no tokens");
      ensure(entry.drafts < entry.tokens, "a step entry consists of drafts only");
      tokens += entry.tokens;
    }
    ensure(tokens <= config_.max_num_batched_tokens, "a step exceeds the token budget");
  }

  const Config& config_;
  const Price& price_;
  Recorder recorder_;
  Arrivals arrivals_;
  Scheduler scheduler_;
  std::size_t num_requests_;
  std::int64_t now_ns_ = 0;
  std::vector<std::int64_t> stage_free_ns_;  // of a pipeline: end of what each stage did last
  std::int64_t device_free_ns_ = 0;          // end of the batch scheduled last
};

void require(bool holds, const char* what) {
  if (!holds) {
    throw std::invalid_argument(what);
  }
}

void validate(const Config& config) {
  require(config.num_gpu_blocks >= 2, "num_gpu_blocks must be at least 2");
  require(config.block_size >= 1, "block_size must be at least 1");
  require(config.max_num_seqs >= 1, "max_num_seqs must be at least 1");
  require(config.max_num_batched_tokens >= 1, "max_num_batched_tokens must be at least 1");
  require(config.max_model_len >= 1, "max_model_len must be at least 1");
  require(config.watermark >= 0.0 && config.watermark < 1.0, "watermark must be in [0, 1)");
  require(config.long_prefill_token_threshold >= 0, "the threshold must not be negative");
  require(config.pipeline_parallel >= 1, "pipeline_parallel must be at least 1");
  const bool speculates = config.spec_method != SpecMethod::kNone;
  require(speculates == (config.num_speculative_tokens > 0), "spec needs a method and a count");
  require(config.pipeline_parallel == 1 || (!config.async_scheduling && !speculates),
          "a pipeline is synchronous, no spec");
  if (config.batching == Batching::kStatic) {
    require(config.pipeline_parallel == 1, "static batching has no pipeline");
    require(!config.async_scheduling && !speculates, "static batching is synchronous, no spec");
  } else if (!config.enable_chunked_prefill) {
    require(config.max_num_batched_tokens >= config.max_model_len,
            "without chunked prefill the token budget must hold max_model_len");
  }
}

}  // namespace

Result run(const Config& config, const std::vector<Request>& requests, const Price& price) {
  validate(config);
  if (config.batching == Batching::kStatic) {
    return run_static_batching(config, requests, price);
  }
  return Engine(config, requests, price).run();
}

}  // namespace servesim::oracle
