#include "cli/search_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/runner.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "cost/shared_cost_model.hpp"
#include "report/result_json.hpp"
#include "study/capacity.hpp"

namespace servesim {
namespace {

constexpr double kLowestRate = 1e-3;
constexpr double kHighestRate = 1e6;
constexpr double kFirstGuess = 1;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// All of a configuration that its cost model may depend on: what is known not to matter is left
/// out, so that an unknown key makes a model of its own.
std::string cost_key(nlohmann::json config) {
  for (const char* name :
       {"hash", "request_rate", "burstiness", "num_prompts", "max_concurrency", "goodput", "policy",
        "seed", "num_gpu_blocks", "max_num_seqs", "max_num_batched_tokens", "block_size",
        "max_model_len", "watermark", "long_prefill_token_threshold", "router", "replicas"}) {
    config.erase(name);
  }
  return config.dump();
}

/// Names a configuration whatever its request rate and its targets.
std::string configuration_hash(nlohmann::json config) {
  config.erase("hash");
  config.erase("request_rate");
  return canonical_hash(config);
}

/// How many rates above a crossing are tried, one per cent apart. The fewer misses decide, the
/// noisier their number, which can fall again above the crossing; in sessions one late request
/// makes many.
int looks_above(std::int64_t allowed_misses, bool sessions) {
  constexpr std::int64_t kVeryFewMisses = 20;
  constexpr std::int64_t kFewMisses = 100;
  constexpr std::int64_t kManyMisses = 1000;
  if (sessions || allowed_misses < kVeryFewMisses) return 10;
  if (allowed_misses < kFewMisses) return 5;
  return allowed_misses < kManyMisses ? 2 : 1;
}

/// Where to look first, and how far from there next.
CapacityRange range_for(const RateGrid& grid, const TraceCount& count, std::int64_t gpus,
                        const ResolvedRun& run, std::int64_t allowed_misses, bool sessions,
                        const EvaluatedConfig* guess) {
  constexpr double kLongestSearchS = 1e9;  // of simulated time
  const double lowest =
      std::max(kLowestRate, static_cast<double>(count.requests) / kLongestSearchS);
  CapacityRange range{grid.floor(lowest), grid.floor(kHighestRate), grid.floor(kFirstGuess),
                      std::max(1, grid.steps_per_decade() / 4)};
  range.looks = looks_above(allowed_misses, sessions);
  constexpr double kLookDistance = 1.01;
  range.look_stride =
      std::max(1, static_cast<int>(std::log10(kLookDistance) * grid.steps_per_decade()));
  if (guess == nullptr || guess->status == SearchStatus::kUnbounded) return range;
  const double scale = static_cast<double>(gpus) / static_cast<double>(guess->gpus);
  range.start = grid.floor(guess->rate * scale);
  const bool alike = gpus == guess->gpus && guess->config.value("policy", "") == run.policy;
  range.first_step = alike ? 1 : std::max(1, grid.steps_per_decade() / 16);
  return range;
}

/// Which target keeps a configuration from meeting the attainment, in words.
std::string binding(const StoredRun& run, const SearchSettings& settings, const std::string& rate) {
  const SloMisses& m = run.misses;
  const std::int64_t unservable = settings.target.count_unservable ? m.unservable : 0;
  const std::array<std::pair<std::string, std::int64_t>, 5> causes{
      std::pair("TTFT binds", m.ttft), std::pair("TPOT binds", m.tpot),
      std::pair("E2E binds", m.e2el),
      std::pair("rejection binds (longer than the KV pool or max_model_len, or given up)",
                m.rejected),
      std::pair("rejection binds (longer than the model's context, or empty)", unservable)};
  const auto worst =
      std::max_element(causes.begin(), causes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t seen = m.good + m.counted(settings.target);
  return fmt::format("{}: at {} requests/s {} of {} requests {} ({:.3g} %)", worst->first, rate,
                     worst->second, seen, worst < causes.begin() + 3 ? "miss it" : "miss",
                     100 * static_cast<double>(worst->second) / static_cast<double>(seen));
}

}  // namespace

Prober::Prober(const TraceSource& trace, const SearchOptions& options)
    : trace_(trace), options_(options), grid_(options.settings.tolerance) {}

void Prober::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (RunControl& control : controls_) control.stop = true;
}

TraceCount Prober::count(const ResolvedRun& run) {
  const std::lock_guard lock(mutex_);
  const auto [found, added] = counts_.try_emplace({run.load.num_prompts, run.model_context});
  if (!added) return found->second;
  TraceCount& count = found->second;
  std::unique_ptr<TraceReader> reader = trace_.open();
  if (run.load.num_prompts > 0) reader = take_first(std::move(reader), run.load.num_prompts);
  Request request;
  while (reader->next(request)) {
    ++count.requests;
    count.unservable +=
        is_unservable(request.input_tokens, request.output_tokens, run.model_context) ? 1 : 0;
  }
  return count;
}

std::string Prober::key_of(const ResolvedRun& run) const {
  return canonical_hash(
      {{"config", run.config}, {"trace", options_.trace_hash}, {"program", options_.program}});
}

StoredRun Prober::simulate_run(const ResolvedRun& run, std::int64_t allowed_misses) {
  std::list<RunControl>::iterator control;
  {
    const std::lock_guard lock(mutex_);
    control = controls_.emplace(controls_.end());
    control->stop = stopped_.load();
  }
  SloProbe metrics(run.targets, options_.settings.target, allowed_misses, run.model_context,
                   *control);
  StoredRun stored;
  const RunResult result = run_with(run, trace_, metrics, *control);
  const bool stopped = control->stop && !metrics.abandoned();
  {
    const std::lock_guard lock(mutex_);
    controls_.erase(control);
  }
  if (stopped) throw Stopped();
  stored.complete = !metrics.abandoned();
  stored.misses = metrics.misses();
  if (stored.complete) {
    nlohmann::ordered_json figures = metrics_json(result);
    figures["saturated"] = result.metrics.saturated;
    figures["warnings"] = result.warnings;
    stored.metrics = figures.dump();
  }
  return stored;
}

StoredRun Prober::probe(const ResolvedRun& base, const TraceCount& count, int step,
                        std::int64_t allowed_misses) {
  if (stopped_) throw Stopped();
  ResolvedRun run = base;
  set_request_rate(run, grid_.text(step), grid_.rate(step));
  const SloTarget& target = options_.settings.target;
  const std::string key = key_of(run);
  requests_ += static_cast<std::uint64_t>(count.requests);
  if (options_.store != nullptr) {
    const std::optional<StoredRun> found = options_.store->find(key);
    if (found && (found->complete || found->misses.counted(target) > allowed_misses)) return *found;
  }
  StoredRun stored = simulate_run(run, allowed_misses);
  stored.configuration = configuration_hash(run.config);
  stored.trace = options_.settings.trace;
  stored.trace_hash = options_.trace_hash;
  stored.version = options_.program;
  stored.request_rate = grid_.rate(step);
  stored.requests = count.requests;
  stored.config = run.config.dump();
  if (options_.store != nullptr) options_.store->put(key, stored);
  return stored;
}

std::optional<EvaluatedConfig> Prober::evaluate(const SearchTask& task,
                                                const EvaluatedConfig* guess) try {
  EvaluatedConfig result;
  result.varied = task.varied;
  if (!task.run) {
    result.reason = task.infeasible;
    return result;
  }
  ResolvedRun base = *task.run;
  base.parts.make_cost_model = share_cost_model(base.parts.make_cost_model, cost_key(base.config));
  if (base.parts.make_decode_cost_model) {
    base.parts.make_decode_cost_model =
        share_cost_model(base.parts.make_decode_cost_model, cost_key(base.config) + "/decode");
  }
  const SloTarget& target = options_.settings.target;
  result.gpus = base.gpus();
  result.gpu_hour_cost = base.gpu_hour_cost;
  result.trace = count(base);
  if (target.counted(result.trace) == 0) {
    throw InputError(fmt::format("{}: none of its {} requests can be served by {}",
                                 options_.settings.trace, result.trace.requests, base.model));
  }
  const std::int64_t allowed = target.allowed_misses(result.trace);
  std::map<int, StoredRun> met;
  const Capacity capacity =
      find_capacity(range_for(grid_, result.trace, result.gpus, base, allowed,
                              trace_.summary().closed_loop > 0, guess),
                    [&](int step) {
                      StoredRun run = probe(base, result.trace, step, allowed);
                      const bool meets = run.complete && run.misses.counted(target) <= allowed;
                      if (meets) met[step] = std::move(run);
                      return meets;
                    });
  result.runs = capacity.probes;
  result.rate_text = grid_.text(capacity.step);
  result.rate = grid_.rate(capacity.step);
  set_request_rate(base, result.rate_text, result.rate);
  result.config = base.config;
  if (capacity.status == CapacityStatus::kUnmet) {
    // To its end, so that what binds is told from all requests.
    const StoredRun whole = probe(base, result.trace, capacity.step, kNoLimit);
    result.status = SearchStatus::kUnmet;
    result.misses = whole.misses;
    result.reason = binding(whole, options_.settings, result.rate_text);
  } else {
    const bool found = capacity.status == CapacityStatus::kFound;
    result.status = found ? SearchStatus::kMet : SearchStatus::kUnbounded;
    result.misses = met.at(capacity.step).misses;
    const std::string& text = met.at(capacity.step).metrics;
    result.metrics = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!result.metrics.is_object()) {
      throw InputError("--results-db: a row of `runs` is damaged: its metrics are no JSON object");
    }
  }
  if (options_.store != nullptr) keep(base, result);
  return result;
} catch (const Stopped&) {
  return std::nullopt;
}

void Prober::keep(const ResolvedRun& run, const EvaluatedConfig& result) {
  StoredCapacity row;
  row.configuration = configuration_hash(run.config);
  row.trace_hash = options_.trace_hash;
  row.version = options_.program;
  row.run_key = key_of(run);
  row.attainment = options_.settings.target.attainment;
  row.tolerance = options_.settings.tolerance;
  row.count_unservable = options_.settings.target.count_unservable;
  row.status = status_name(result.status);
  if (result.status == SearchStatus::kMet) row.max_request_rate = result.rate;
  if (result.has_answer()) row.goodput_per_gpu = result.goodput_per_gpu();
  row.gpus = result.gpus;
  options_.store->put_capacity(row);
}

}  // namespace servesim
