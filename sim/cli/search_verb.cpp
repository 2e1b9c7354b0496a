#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/axes.hpp"
#include "cli/flags.hpp"
#include "cli/gpu_cost.hpp"
#include "cli/headline.hpp"
#include "cli/inputs.hpp"
#include "cli/interrupt.hpp"
#include "cli/outputs.hpp"
#include "cli/resolve.hpp"
#include "cli/runner.hpp"
#include "cli/running_flags.hpp"
#include "cli/search_runner.hpp"
#include "cli/search_space.hpp"
#include "cli/terminal.hpp"
#include "cli/trace_set.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/units.hpp"
#include "report/report_html.hpp"
#include "report/result_json.hpp"
#include "report/result_table.hpp"
#include "study/search_writers.hpp"

namespace servesim {
namespace {

void declare_search_flags(FlagSet& flags) {
  flags.group("The target");
  flags.add({"goodput", "NAME:MS ...", "Latency targets: ttft:500 tpot:50 e2el:10000 (required)",
             Arity::kMany});
  flags.add(
      {"attainment", "X", "Share of requests that must meet all of them [0.99]", Arity::kOne});
  flags.add({"count-unservable", "",
             "Requests longer than the model's context count as misses, instead of being left out",
             Arity::kNone});
  flags.add({"tolerance", "X", "Distance of the rates that are tried [0.01]", Arity::kOne});
  flags.group("The space");
  flags.add({"space", "FILE",
             "JSON: a value, a list or a range of any flag, {\"max-num-seqs\": {\"from\": 32, "
             "\"to\": 512, \"factor\": 2}}",
             Arity::kOne});
  flags.add({"objective", "NAME", "goodput-per-gpu|goodput-per-dollar|goodput [goodput-per-gpu]",
             Arity::kOne});
  flags.add({"gpu-hour-cost", "X|NAME:X ...", "Dollars per GPU and hour, for all or by --hardware",
             Arity::kMany});
  flags.group("Results");
  flags.add({"results-db", "FILE",
             "SQLite file that keeps every run, so that an interrupted search goes on and a "
             "repeated one costs nothing",
             Arity::kOne});
  flags.add(
      {"json", "FILE", "Write the result as JSON; - is stdout, instead of the table", Arity::kOne});
  flags.add({"export", "FILE", "Write all configurations; .csv or .json", Arity::kOne});
  flags.add({"report", "FILE",
             "Write an HTML report: the Pareto front, and the best configuration at its rate",
             Arity::kOne});
}

/// Where a search writes.
struct SearchOutputs {
  std::string json, exported, report;  ///< paths; empty: nowhere
  bool json_on_stdout = false;
};

/// Outputs are opened here only to see that they can be written: a search may run long and be
/// killed, and must leave no temporary files then.
SearchOutputs check_outputs(const FlagSet& flags, const std::vector<AxisValues>& axes) {
  const std::string json = flags.value("json");
  const std::string exported = flags.value("export");
  const std::string report = flags.value("report");
  const std::string store = flags.value("results-db");
  if (!exported.empty() && !exported.ends_with(".csv") && !exported.ends_with(".json")) {
    throw InputError(fmt::format("--export {}: the name must end in .csv or .json", exported));
  }
  check_report_name(report);
  check_distinct(
      {{"--json", json}, {"--export", exported}, {"--report", report}, {"--results-db", store}},
      input_files(flags, axes));
  for (const std::string& path : {json, exported, report}) {
    for (const char* beside : {"-wal", "-shm", "-journal"}) {
      if (store.empty() || path != store + beside) continue;
      throw InputError(
          fmt::format("{} is SQLite's own file beside --results-db {}; name another", path, store));
    }
    if (!path.empty() && path != "-") const AtomicFile writable(path);
  }
  return {json == "-" ? "" : json, exported, report, json == "-"};
}

SearchSettings settings_of(const FlagSet& flags) {
  SearchSettings settings;
  settings.targets = parse_goodput(flags.values("goodput"));
  if (!settings.targets.ttft_ms && !settings.targets.tpot_ms && !settings.targets.e2el_ms) {
    throw InputError("--goodput is missing: the latency targets to meet, as in ttft:500 tpot:50");
  }
  settings.target.attainment = parse_number(flags.value("attainment", "0.99"), "--attainment");
  if (!(settings.target.attainment > 0 && settings.target.attainment <= 1)) {
    throw InputError(
        fmt::format("--attainment {}: accepted: above 0 and up to 1", flags.value("attainment")));
  }
  settings.target.count_unservable = flags.given("count-unservable");
  settings.tolerance = parse_number(flags.value("tolerance", "0.01"), "--tolerance");
  if (settings.tolerance < 0.0005 || settings.tolerance > 0.5) {
    throw InputError(
        fmt::format("--tolerance {}: accepted: 0.0005 to 0.5", flags.value("tolerance")));
  }
  settings.objective = parse_objective(flags.value("objective", "goodput-per-gpu"));
  if (settings.objective == Objective::kGoodputPerDollar && !flags.given("gpu-hour-cost")) {
    throw InputError("--objective goodput-per-dollar needs --gpu-hour-cost");
  }
  settings.seed =
      static_cast<std::uint64_t>(parse_integer(flags.value("seed", "0"), "--seed", 0, INT64_MAX));
  return settings;
}

/// Prices of GPUs that nobody uses are typing errors, and nothing per dollar has no end.
void check_prices(const std::vector<SearchTask>& tasks, const SearchSettings& settings,
                  const GpuHourCost& price) {
  std::vector<const ResolvedRun*> runs;
  for (const SearchTask& task : tasks) {
    if (task.run) runs.push_back(&*task.run);
  }
  if (runs.size() == tasks.size()) price.check_used(runs);
  for (const ResolvedRun* run : runs) {
    if (settings.objective != Objective::kGoodputPerDollar || run->gpu_hour_cost != 0.0) continue;
    throw InputError("--objective goodput-per-dollar needs prices above 0: " + run->hardware +
                     " costs nothing");
  }
}

/// Resolves every configuration. One that cannot be run (it does not fit, its settings contradict
/// each other) is part of the answer; a name nobody knows is a fault.
std::vector<SearchTask> make_tasks(const std::vector<AxisValues>& axes,
                                   const SearchSettings& settings, const GpuHourCost& price) {
  Registries registries;
  register_builtins(registries);
  Resolver resolver(registries);
  RunSpec base;
  base.seed = settings.seed;
  base.request_rate = "1";
  const std::vector<PlannedRun> planned = product(base, axes);
  const std::vector<std::size_t> before = predecessors(axes);
  const bool many_policies = std::any_of(axes.begin(), axes.end(), [](const AxisValues& axis) {
    return axis.axis->name == "policy" && axis.values.size() > 1;
  });
  std::vector<SearchTask> tasks;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    SearchTask task{planned[i].varied, std::nullopt, "", before[i]};
    if (many_policies) task.varied.insert(task.varied.begin(), {"policy", *planned[i].spec.policy});
    try {
      task.run = resolver.resolve(planned[i].spec, settings.targets);
    } catch (const InputError& error) {
      task.infeasible = error.what();
      if (task.infeasible.starts_with("unknown ")) throw;
    }
    if (task.run) task.run->gpu_hour_cost = price.of(*task.run);
    tasks.push_back(std::move(task));
  }
  check_prices(tasks, settings, price);
  return tasks;
}

/// The runs that can be made; throws when there is none.
std::vector<ResolvedRun> feasible(const std::vector<SearchTask>& tasks) {
  std::vector<ResolvedRun> runs;
  for (const SearchTask& task : tasks) {
    if (task.run) runs.push_back(*task.run);
  }
  if (!runs.empty()) return runs;
  if (tasks.size() == 1) throw InputError(tasks.front().infeasible);
  throw InputError(fmt::format("none of the {} configurations can be run; the first: {}",
                               tasks.size(), tasks.front().infeasible));
}

/// Says which target nobody meets.
InputError nobody(const SearchResult& result) {
  const EvaluatedConfig* nearest = nullptr;
  const auto share = [&result](const EvaluatedConfig& config) {
    const auto missed = static_cast<double>(config.misses.counted(result.settings.target));
    const auto good = static_cast<double>(config.misses.good);
    return good / std::max(good + missed, 1.0);
  };
  for (const EvaluatedConfig& config : result.evaluated) {
    if (config.status != SearchStatus::kUnmet) continue;
    if (nearest == nullptr || share(config) > share(*nearest)) nearest = &config;
  }
  std::string which;
  for (const auto& [name, value] : nearest->varied) which += fmt::format(" --{} {}", name, value);
  return InputError(
      fmt::format("no configuration serves {:.4g} % of {} within {} ms at any rate; {}{}",
                  100 * result.settings.target.attainment, result.settings.trace,
                  targets_text(result.settings.targets), nearest->reason,
                  which.empty() ? "" : fmt::format(" (nearest:{})", which)));
}

/// Version and build: results of a program that was changed must not be taken for this one's.
std::string program_identity() {
  try {
    const auto self = InputFile::open("/proc/self/exe");
    return fmt::format("{}+{}", version(), content_hash(self->bytes()).substr(0, 12));
  } catch (const InputError&) {
    return version();  // no /proc
  }
}

std::string varied_text(const EvaluatedConfig& config) {
  std::string text;
  for (const auto& [name, value] : config.varied) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

/// What the search has found.
std::string answer_text(const SearchResult& result) {
  const EvaluatedConfig& best = result.evaluated[*result.best];
  const SloTarget& target = result.settings.target;
  std::string text = best.status == SearchStatus::kUnbounded
                         ? "Every rate that was tried meets the target"
                         : fmt::format("The highest rate is {} requests/s", best.rate_text);
  text += fmt::format(
      " on {} GPU{} ({:.4g} served requests/s per GPU): {:.4g} % of {} requests are within {} ms, "
      "{:.4g} % were asked for.",
      best.gpus, best.gpus == 1 ? "" : "s", best.goodput_per_gpu(), 100 * best.attainment(target),
      with_thousands(target.counted(best.trace)), targets_text(result.settings.targets),
      100 * target.attainment);
  if (!best.varied.empty())
    text += fmt::format(" Best by {}: {}.", objective_name(result.settings.objective),
                        varied_text(best));
  if (best.trace.unservable > 0 && !target.count_unservable) {
    text += fmt::format(" {} of {} requests are longer than the model's context and left out.",
                        with_thousands(best.trace.unservable), with_thousands(best.trace.requests));
  }
  return text;
}

/// The Pareto front of a search, and its best configuration simulated once more for its curves.
std::string search_report(const SearchResult& result, const std::vector<SearchTask>& tasks,
                          const TraceSource& trace, const std::string& command) {
  ReportInput input{command, result.settings.seed, {}, {}};
  input.pareto.answer = answer_text(result);
  input.pareto.x_label = "output tokens/s per user";
  input.pareto.y_label = "output tokens/s per GPU";
  const std::set<std::size_t> front(result.pareto.begin(), result.pareto.end());
  for (std::size_t i = 0; i < result.evaluated.size(); ++i) {
    const EvaluatedConfig& config = result.evaluated[i];
    if (!config.has_answer()) continue;
    input.pareto.points.push_back({varied_text(config), config.tokens_per_s_per_user(),
                                   config.throughput_per_gpu(), front.contains(i)});
  }
  const EvaluatedConfig& best = result.evaluated[*result.best];
  ResolvedRun run = *tasks[*result.best].run;
  set_request_rate(run, best.rate_text, best.rate);
  const SeriesDetail detail = SeriesDetail::for_runs(1);
  RunControl control;
  const RunResult of_best = run_one(run, trace, {nullptr, nullptr, nullptr, &detail}, control);
  input.runs.push_back({&of_best, best.varied});
  return report_html(input);
}

void write_results(const SearchOutcome& outcome, const SearchOutputs& outputs, const FlagSet& flags,
                   const std::string& command, const std::string& headline,
                   const std::string& report) {
  const SearchResult& result = outcome.result;
  const std::string json = search_json(result, command);
  std::unique_ptr<AtomicFile> json_file;
  std::unique_ptr<AtomicFile> exported;
  if (!outputs.json.empty()) {
    json_file = std::make_unique<AtomicFile>(outputs.json);
    json_file->write(json);
    json_file->close();
  }
  if (!outputs.exported.empty()) {
    exported = std::make_unique<AtomicFile>(outputs.exported);
    exported->write(outputs.exported.ends_with(".csv") ? search_csv(result)
                                                       : search_json(result, ""));
    exported->close();
  }
  std::unique_ptr<AtomicFile> report_file;
  if (!outputs.report.empty()) {
    report_file = std::make_unique<AtomicFile>(outputs.report);
    report_file->write(report);
    report_file->close();
  }
  if (report_file) report_file->commit();
  if (json_file) json_file->commit();
  if (exported) exported->commit();
  if (outputs.json_on_stdout) {
    write_stdout(json);
  } else if (!flags.given("quiet")) {
    write_stdout(search_table(headline, result, style_for(STDOUT_FILENO)));
  }
}

/// The axes of the command line and of --space.
std::vector<AxisValues> searched_axes(const FlagSet& flags) {
  const std::vector<AxisValues> given = given_axes(flags);
  check_search_axes(given);
  return flags.given("space") ? join_axes(given, read_space(flags.value("space"))) : given;
}

int say_interrupted(const SearchOutcome& outcome, std::size_t tasks, bool kept) {
  fmt::print(stderr, "simulate: interrupted with {} of {} configurations done; {}\n",
             outcome.result.evaluated.size(), tasks,
             kept ? "the same command goes on from there"
                  : "nothing was kept (--results-db FILE keeps every run)");
  return kInterruptedExit;
}

}  // namespace

FlagSet search_flags() {
  FlagSet flags("search",
                "Finds the highest request rate that meets latency targets, and the best "
                "configuration of a space.");
  flags.group("Trace (one)");
  add_axes(flags, Axis::Scope::kTrace);
  declare_search_flags(flags);
  flags.group("Engine (each takes a list: part of the space)");
  add_axes(flags, Axis::Scope::kEngine);
  flags.group("Load (lists too; rate, time scale and concurrency are not for a search)");
  add_axes(flags, Axis::Scope::kLoad);
  add_running_flags(flags);
  flags.footer(
      "Examples:\n"
      "  simulate search --trace workloads/chat.jsonl --goodput ttft:500 tpot:50\n"
      "  simulate search --trace azure.csv --model llama-2-70b --tensor-parallel-size 2,4,8 "
      "--max-num-seqs 64,128,256 --goodput ttft:1000 tpot:60 --results-db runs.sqlite\n"
      "  simulate search --trace chat.jsonl --space study.json --goodput tpot:40 --export all.csv");
  return flags;
}

int run_search_verb(const std::vector<std::string>& arguments, const std::string& command) {
  FlagSet flags = search_flags();
  if (!flags.parse(arguments)) {
    write_stdout(flags.help());
    return 0;
  }
  if (!flags.given("trace")) {
    throw InputError("--trace FILE is missing: the requests to replay (see --help)");
  }
  const GpuHourCost price(flags.values("gpu-hour-cost"));
  SearchOptions options;
  options.settings = settings_of(flags);
  const std::vector<AxisValues> axes = searched_axes(flags);
  std::vector<SearchTask> tasks = make_tasks(axes, options.settings, price);
  const std::vector<ResolvedRun> runs = feasible(tasks);
  const SearchOutputs outputs = check_outputs(flags, axes);

  TraceSet traces;
  const TraceSource& trace = traces.open(runs.front().trace_path, runs.front().trace);
  for (SearchTask& task : tasks) {
    if (!task.run) continue;
    set_trace_format(*task.run, traces.open(task.run->trace_path, task.run->trace).format());
  }
  options.settings.trace = trace_label(runs.front().trace_path);
  options.trace_hash = traces.content_hash_of(runs.front().trace_path);
  options.program = program_identity();
  options.threads = thread_count(flags);
  options.progress = shows_progress(flags);
  std::unique_ptr<RunStore> store;
  if (flags.given("results-db")) store = std::make_unique<RunStore>(flags.value("results-db"));
  options.store = store.get();
  catch_interrupts();
  const SearchOutcome outcome = run_search(tasks, trace, options);
  if (outcome.interrupted) return say_interrupted(outcome, tasks.size(), store != nullptr);
  if (!outcome.result.best) throw nobody(outcome.result);
  const std::string report =
      outputs.report.empty() ? "" : search_report(outcome.result, tasks, trace, command);
  write_results(outcome, outputs, flags, command, headline(runs), report);
  return 0;
}

}  // namespace servesim
