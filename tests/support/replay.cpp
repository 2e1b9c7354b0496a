#include "support/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cluster/simulation.hpp"
#include "sched/policies/policies.hpp"
#include "support/oracle/oracle.hpp"

namespace servesim::testing {
namespace {

class VectorTrace : public TraceReader {
 public:
  explicit VectorTrace(const std::vector<oracle::Request>& requests) : requests_(requests) {
    for (std::size_t i = 0; i < requests.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return requests[a].arrival_ns < requests[b].arrival_ns;
    });
  }
  bool next(Request& request) override {
    if (next_ == order_.size()) return false;
    const oracle::Request& from = requests_[order_[next_]];
    request = Request{};
    request.index = order_[next_++];
    request.id = from.id;
    request.arrival = SimTime(from.arrival_ns);
    request.input_tokens = from.prompt_len;
    request.output_tokens = from.output_len;
    request.priority = from.priority;
    request.hash_ids = from.hash_ids;
    request.hash_block = from.hash_ids.empty() ? 0 : from.hash_block;
    return true;
  }

 private:
  const std::vector<oracle::Request>& requests_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
};

class AffineModel : public StepCostModel {
 public:
  explicit AffineModel(const AffinePrice& price) : price_(price) {}
  StepCost price(const StepShape& shape, Heat) override {
    std::int64_t context = shape.decode_context;
    for (const PrefillChunk& chunk : shape.chunks) context += chunk.context;
    StepCost cost;
    cost.total = SimTime(total(shape.tokens(), context, shape.shared));
    return cost;
  }
  DecodeStep decode_step(std::int64_t seqs, std::int64_t context, const SharedContext& shared,
                         Heat&) override {
    return {SimTime(total(seqs, context, shared)), 0, &rest_};
  }
  bool decode_step_is_constant() const override { return price_.per_context_ns == 0; }
  Heat next_heat(Heat heat, double, SimTime) const override { return heat; }
  /// The same on each stage, what is left over on the last.
  std::span<const SimTime> stages(const StepCost& cost) override {
    times_.assign(static_cast<std::size_t>(price_.stages),
                  SimTime(cost.total.ns() / price_.stages));
    times_.back() = cost.total - times_.front() * (price_.stages - 1);
    return times_;
  }

 private:
  std::int64_t total(std::int64_t tokens, std::int64_t context, const SharedContext& shared) const {
    return price_.base_ns + price_.per_token_ns * tokens + price_.per_context_ns * context +
           price_.per_shared_ns * shared.reads;
  }
  AffinePrice price_;
  std::vector<SimTime> times_;
  StepCost rest_;
};

class Recorder : public Observer {
 public:
  explicit Recorder(std::size_t requests) { outcome.fates.resize(requests); }
  void on_request(const RequestRecord& r) override {
    Fate& fate = outcome.fates.at(r.index);
    if (r.status != RequestStatus::kCompleted) return;
    fate = {true,
            r.scheduled.ns(),
            r.first_token.ns(),
            r.last_token.ns(),
            r.generated_tokens,
            r.prefix_hit_tokens,
            r.preemptions};
  }
  void on_token_gaps(SimTime gap, std::int64_t count) override { outcome.gaps[gap.ns()] += count; }
  Outcome outcome;
};

class LogCollector : public ScheduleLog {
 public:
  void on_step(const LoggedStep& step) override { steps.push_back(step); }
  std::vector<LoggedStep> steps;
};

SchedulerConfig scheduler_config(const oracle::Config& from) {
  SchedulerConfig config;
  config.block_size = from.block_size;
  config.num_gpu_blocks = from.num_gpu_blocks;
  config.max_num_seqs = from.max_num_seqs;
  config.max_num_batched_tokens = from.max_num_batched_tokens;
  config.max_model_len = from.max_model_len;
  config.long_prefill_token_threshold = from.long_prefill_token_threshold;
  config.watermark = from.watermark;
  config.enable_prefix_caching = from.enable_prefix_caching;
  config.enable_chunked_prefill = from.enable_chunked_prefill;
  config.async_scheduling = from.async_scheduling;
  config.pipeline_parallel = from.pipeline_parallel;
  config.scheduler_reserve_full_isl = from.scheduler_reserve_full_isl;
  config.scheduling_policy = from.policy == oracle::QueuePolicy::kPriority
                                 ? SchedulingPolicy::kPriority
                                 : SchedulingPolicy::kFcfs;
  config.truncate_at_max_model_len = true;
  config.speculative.method =
      from.spec_method == oracle::SpecMethod::kNgram   ? SpeculativeMethod::kNgram
      : from.spec_method == oracle::SpecMethod::kEagle ? SpeculativeMethod::kEagle
                                                       : SpeculativeMethod::kNone;
  config.speculative.num_speculative_tokens = from.num_speculative_tokens;
  config.speculative.deterministic_acceptance = true;
  config.layer_groups.full = from.full_groups;
  config.layer_groups.windowed = from.windowed_groups;
  config.layer_groups.window = from.window;
  return config;
}

Outcome run(const oracle::Config& config, const std::vector<oracle::Request>& requests,
            const AffinePrice& price, const Adjust& adjust, ScheduleLog* log, TicketNames* names) {
  VectorTrace trace(requests);
  Recorder recorder(requests.size());
  RunControl control;
  ClusterConfig cluster;
  cluster.scheduler = scheduler_config(config);
  if (adjust) adjust(cluster.scheduler);
  cluster.host.step = SimTime(config.host_ns);
  cluster.wait_for_arrivals = true;
  ClusterParts parts;
  parts.make_policy = config.batching == oracle::Batching::kStatic ? make_static
                      : config.enable_chunked_prefill              ? make_chunked
                                                                   : make_continuous;
  parts.make_cost_model = [&] {
    AffinePrice staged = price;
    staged.stages = config.pipeline_parallel;
    return staged.for_engine();
  };
  parts.make_router = make_round_robin;
  const std::vector<EngineStats> stats =
      simulate(cluster, parts, trace, recorder, log, names, control);
  recorder.outcome.recomputed_tokens = stats[0].recomputed_tokens;
  recorder.outcome.steps = stats[0].steps;
  recorder.outcome.kv_used = stats[0].kv.used;
  recorder.outcome.kv_internal = stats[0].kv.internal;
  recorder.outcome.kv_reserved = stats[0].kv.reserved;
  recorder.outcome.kv_external = stats[0].kv.external;
  recorder.outcome.elapsed_s = stats[0].kv.elapsed_s;
  recorder.outcome.stats = stats[0];
  return recorder.outcome;
}

class Names {
 public:
  explicit Names(const TicketNames& names) : names_(names) {}
  std::string of(Ticket ticket) const { return names_.at(ticket); }
  std::vector<std::string> of(const std::vector<Ticket>& tickets) const {
    std::vector<std::string> all;
    for (const Ticket ticket : tickets) all.push_back(of(ticket));
    return all;
  }
  std::map<std::string, std::int64_t> of(const LoggedStep::Counts& counts) const {
    std::map<std::string, std::int64_t> all;
    for (const auto& [ticket, count] : counts) all[of(ticket)] = count;
    return all;
  }

 private:
  const TicketNames& names_;
};

}  // namespace

oracle::Price AffinePrice::for_oracle() const {
  return [price = *this](const std::vector<oracle::ScheduledWork>& work,
                         std::int64_t shared_reads) -> std::int64_t {
    if (work.empty()) return 0;
    std::int64_t tokens = 0;
    std::int64_t context = 0;
    for (const oracle::ScheduledWork& part : work) {
      tokens += part.tokens;
      context += part.context;
    }
    return price.base_ns + price.per_token_ns * tokens + price.per_context_ns * context +
           price.per_shared_ns * shared_reads;
  };
}

std::unique_ptr<StepCostModel> AffinePrice::for_engine() const {
  return std::make_unique<AffineModel>(*this);
}

Outcome run_engine(const oracle::Config& config, const std::vector<oracle::Request>& requests,
                   const AffinePrice& price, const Adjust& adjust) {
  return run(config, requests, price, adjust, nullptr, nullptr);
}

std::vector<oracle::LoggedStep> log_engine(const oracle::Config& config,
                                           const std::vector<oracle::Request>& requests,
                                           const AffinePrice& price, Outcome* outcome,
                                           const Adjust& adjust) {
  LogCollector log;
  TicketNames ids;
  const Outcome result = run(config, requests, price, adjust, &log, &ids);
  if (outcome != nullptr) *outcome = result;
  const Names names(ids);
  std::vector<oracle::LoggedStep> steps;
  for (const LoggedStep& step : log.steps) {
    oracle::LoggedStep out;
    out.step = step.step;
    out.t_ns = step.time.ns();
    for (const auto& [ticket, tokens] : step.scheduled)
      out.scheduled.emplace_back(names.of(ticket), tokens);
    out.admitted = names.of(step.admitted);
    out.resumed = names.of(step.resumed);
    out.preempted = names.of(step.preempted);
    out.prefix_hit_tokens = names.of(step.prefix_hit_tokens);
    out.drafts = names.of(step.drafts);
    out.free_blocks = step.free_blocks;
    out.running = names.of(step.running);
    out.waiting = names.of(step.waiting);
    out.tokens_out = names.of(step.tokens_out);
    out.accepted = names.of(step.accepted);
    out.finished = names.of(step.finished);
    out.done_ns = step.done.ns();
    out.free_blocks_after = step.free_blocks_after;
    steps.push_back(std::move(out));
  }
  return steps;
}

Outcome run_oracle(const oracle::Config& config, const std::vector<oracle::Request>& requests,
                   const AffinePrice& price) {
  const oracle::Result result = oracle::run(config, requests, price.for_oracle());
  Outcome outcome;
  for (const oracle::Outcome& o : result.outcomes) {
    Fate fate;
    if (o.status == oracle::Status::kCompleted) {
      fate = {true,
              o.admit_ns,
              o.first_token_ns,
              o.finish_ns,
              static_cast<std::int64_t>(o.token_ns.size()),
              o.first_prefix_hit_tokens,
              o.preemptions};
    }
    for (std::size_t i = 1; i < o.token_ns.size(); ++i)
      ++outcome.gaps[o.token_ns[i] - o.token_ns[i - 1]];
    outcome.recomputed_tokens += o.recomputed_tokens;
    outcome.fates.push_back(fate);
  }
  for (const oracle::LoggedStep& step : result.steps)
    outcome.steps += step.scheduled.empty() ? 0 : 1;
  return outcome;
}

std::string difference(const Outcome& expected, const Outcome& actual) {
  for (std::size_t i = 0; i < expected.fates.size(); ++i) {
    const Fate& e = expected.fates[i];
    const Fate& a = actual.fates[i];
    if (e == a) continue;
    const auto text = [](const Fate& f) {
      return fmt::format(
          "completed {} scheduled {} first {} last {} outputs {} hits {} preemptions {}",
          f.completed, f.scheduled_ns, f.first_token_ns, f.last_token_ns, f.outputs,
          f.prefix_hit_tokens, f.preemptions);
    };
    return fmt::format("request {}:\n  expected {}\n  actual   {}", i, text(e), text(a));
  }
  if (expected.gaps != actual.gaps) {
    std::string text = "token gaps differ:";
    std::map<std::int64_t, std::int64_t> surplus = actual.gaps;
    for (const auto& [gap, count] : expected.gaps) surplus[gap] -= count;
    for (const auto& [gap, count] : surplus) {
      if (count != 0) text += fmt::format(" {} ns {:+};", gap, count);
    }
    return text;
  }
  if (expected.recomputed_tokens != actual.recomputed_tokens) {
    return fmt::format("recomputed tokens: expected {}, actual {}", expected.recomputed_tokens,
                       actual.recomputed_tokens);
  }
  if (expected.steps != actual.steps) {
    return fmt::format("steps: expected {}, actual {}", expected.steps, actual.steps);
  }
  return {};
}

}  // namespace servesim::testing
