#include "cli/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/run_warnings.hpp"
#include "report/derived.hpp"
#include "report/metrics_collector.hpp"
#include "report/schedule_log_writer.hpp"

namespace servesim {
namespace {

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The state that worker threads share with the one that waits for them.
class Pool {
 public:
  Pool(const std::vector<ResolvedRun>& runs, const TraceSet& traces, const RunnerOptions& options)
      : runs_(runs),
        traces_(traces),
        options_(options),
        controls_(runs.size()),
        results_(runs.size()),
        errors_(runs.size()) {}

  RunnerOutcome run() {
    const std::size_t count = std::clamp<std::size_t>(options_.threads, 1, runs_.size());
    std::vector<std::jthread> workers;
    active_ = count;
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { work(); });
    supervise();
    workers.clear();  // joins
    for (const std::exception_ptr& error : errors_) {
      if (error) std::rethrow_exception(error);
    }
    RunnerOutcome outcome;
    outcome.interrupted = interrupted();
    outcome.results = std::move(results_);
    return outcome;
  }

 private:
  void work() {
    while (!stop_) {
      const std::size_t at = next_++;
      if (at >= runs_.size()) break;
      const ResolvedRun& run = runs_[at];
      try {
        RunTaps taps = options_.taps;
        if (options_.columns != nullptr) taps.observer = &(*options_.columns)[at];
        results_[at] = run_one(run, traces_.at(run.trace_path, run.trace), taps, controls_[at]);
      } catch (...) {
        // Runs before this one have started already, so the first error in order is found whatever
        // the number of threads.
        errors_[at] = std::current_exception();
        stop_ = true;
      }
      ++done_;
    }
    const std::lock_guard lock(mutex_);
    --active_;
    finished_.notify_all();
  }

  /// Waits for the workers; passes an interrupt on to them and shows progress meanwhile.
  void supervise() {
    constexpr std::chrono::milliseconds kPause(50);
    ProgressLine line(options_.progress);
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, kPause, [this] { return active_ == 0; })) {
      if (interrupted()) {
        stop_ = true;
        for (RunControl& control : controls_) control.stop = true;
      }
      line.update(progress());
    }
  }

  ProgressState progress() const {
    ProgressState state;
    state.runs = runs_.size();
    state.runs_done = done_;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const ResolvedRun& run = runs_[i];
      state.requests_total += requests_of(run, traces_);
      state.requests_read += controls_[i].requests_read;
      state.simulated_s =
          std::max(state.simulated_s, static_cast<double>(controls_[i].simulated_ns) * 1e-9);
    }
    return state;
  }

  const std::vector<ResolvedRun>& runs_;
  const TraceSet& traces_;
  const RunnerOptions& options_;
  std::vector<RunControl> controls_;
  std::vector<std::optional<RunResult>> results_;
  std::vector<std::exception_ptr> errors_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};
  std::atomic<bool> stop_{false};
  std::size_t active_ = 0;  // guarded by mutex_
  std::mutex mutex_;
  std::condition_variable finished_;
};

EngineResult engine_result(const KvFacts& kv, std::span<const EngineStats> engines,
                           StepCostModel& cost) {
  return {kv, std::ssize(engines), sum_of(engines), cost.peak_flops(), cost.peak_bytes_per_s()};
}

void fill_in_engines(const ResolvedRun& run, const ClusterOutcome& outcome, RunResult& result) {
  const std::span<const EngineStats> engines = outcome.engines;
  const auto first = static_cast<std::size_t>(run.cluster.replicas);
  const auto cost = run.parts.make_cost_model();
  static_cast<EngineResult&>(result) = engine_result(run.kv_facts, engines, *cost);
  if (!run.cluster.disaggregated) return;
  const auto decode_cost = run.parts.make_decode_cost_model();
  result.pools.push_back(
      {engine_result(run.kv_facts, engines.first(first), *cost), "prefill", run.hardware});
  result.pools.push_back({engine_result(run.decode_kv_facts, engines.subspan(first), *decode_cost),
                          "decode", run.decode_hardware});
  result.kv = run.decode_kv_facts;
  const auto mean = [&](double EngineResult::*peak) {
    double sum = 0;
    for (const PoolResult& pool : result.pools) {
      sum += pool.*peak * static_cast<double>(pool.replicas);
    }
    return sum / static_cast<double>(result.replicas);
  };
  result.peak_flops = mean(&EngineResult::peak_flops);
  result.peak_bytes_per_s = mean(&EngineResult::peak_bytes_per_s);
}

std::uint64_t requests_of(const LoadOptions& load, const TraceSource& trace) {
  const std::uint64_t total = trace.summary().requests;
  return load.num_prompts > 0 ? std::min<std::uint64_t>(load.num_prompts, total) : total;
}

/// `observer` passes on to `metrics`, or is it.
RunResult carry_out(const ResolvedRun& run, const TraceSource& trace, MetricsCollector& metrics,
                    Observer& observer, ScheduleLogWriter* log, RunControl& control) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start_s = thread_cpu_s();
  const bool with_scenario = !run.cluster.scenario.empty();
  TimelineRecorder timeline;
  ObserverList both;
  if (with_scenario) {
    both.add(observer);
    both.add(timeline);
  }
  const std::unique_ptr<TraceReader> reader = apply_load(trace.open(), run.load);
  metrics.expect(requests_of(run.load, trace));
  RunResult result;
  TicketNames* names = log != nullptr ? &log->names() : nullptr;
  ClusterOutcome outcome =
      run_cluster(run.cluster, run.parts, *reader,
                  with_scenario ? static_cast<Observer&>(both) : observer, log, names, control);
  fill_in_engines(run, outcome, result);
  result.transfers = std::move(outcome.transfers);
  if (with_scenario) result.faults = outcome.faults;
  constexpr std::size_t kTimelineBuckets = 60;
  if (with_scenario) result.timeline = timeline.buckets(kTimelineBuckets);
  result.trace = trace_label(run.trace_path);
  result.policy = run.policy;
  result.model = run.model;
  const bool alike = run.decode_hardware.empty() || run.decode_hardware == run.hardware;
  result.hardware =
      alike ? run.hardware : fmt::format("{} + {}", run.hardware, run.decode_hardware);
  result.config = run.config;
  result.gpus = run.gpus();
  result.gpu_hour_cost = run.gpu_hour_cost;
  result.metrics = metrics.finish();
  result.warnings = warnings_of(run, trace, result.metrics, outcome.faults);
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.cpu_s = thread_cpu_s() - cpu_start_s;
  return result;
}

}  // namespace

RunResult run_with(const ResolvedRun& run, const TraceSource& trace, MetricsCollector& metrics,
                   RunControl& control) {
  return carry_out(run, trace, metrics, metrics, nullptr, control);
}

RunResult run_one(const ResolvedRun& run, const TraceSource& trace, const RunTaps& taps,
                  RunControl& control) {
  MetricsCollector metrics(run.targets);
  ObserverList observers;
  observers.add(metrics);
  std::optional<SeriesCollector> series;
  if (taps.observer != nullptr) observers.add(*taps.observer);
  if (taps.timeline != nullptr) observers.add(*taps.timeline);
  if (taps.series != nullptr) observers.add(series.emplace(*taps.series));
  Observer& observer = observers.size() > 1 ? static_cast<Observer&>(observers) : metrics;
  RunResult result = carry_out(run, trace, metrics, observer, taps.log, control);
  if (series) result.series = std::make_shared<RunSeries>(series->finish());
  return result;
}

std::uint64_t requests_of(const ResolvedRun& run, const TraceSet& traces) {
  return requests_of(run.load, traces.at(run.trace_path, run.trace));
}

RunnerOutcome run_all(const std::vector<ResolvedRun>& runs, const TraceSet& traces,
                      const RunnerOptions& options) {
  return Pool(runs, traces, options).run();
}

}  // namespace servesim
