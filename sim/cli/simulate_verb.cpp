#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/axes.hpp"
#include "cli/compare_runs.hpp"
#include "cli/flags.hpp"
#include "cli/gpu_cost.hpp"
#include "cli/headline.hpp"
#include "cli/inputs.hpp"
#include "cli/interrupt.hpp"
#include "cli/outputs.hpp"
#include "cli/resolve.hpp"
#include "cli/runner.hpp"
#include "cli/running_flags.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "report/report_html.hpp"
#include "report/result_json.hpp"
#include "report/result_table.hpp"
#include "report/schedule_log_writer.hpp"

namespace servesim {
namespace {

/// Flags of the engine that contradict --engine-config, which states them all.
void check_engine_config(const FlagSet& flags, const std::vector<AxisValues>& given) {
  if (!flags.given("engine-config")) return;
  for (const auto& [axis, values] : given) {
    if (axis->scope == Axis::Scope::kEngine) {
      throw InputError(fmt::format(
          "--{} contradicts --engine-config, which decides the engine; change it in the file",
          axis->name));
    }
  }
}

/// What only one run can write.
void check_single_run_outputs(const OutputPaths& paths, const std::vector<ResolvedRun>& runs) {
  for (const auto& [flag, path] :
       {std::pair("--requests", paths.requests), std::pair("--schedule-log", paths.schedule_log),
        std::pair("--timeline", paths.timeline)}) {
    if (!path.empty() && runs.size() > 1) {
      throw InputError(
          fmt::format("{} is for a single run, and these flags ask for {}", flag, runs.size()));
    }
  }
  const ClusterConfig& cluster = runs.front().cluster;
  if (!paths.schedule_log.empty() &&
      (!cluster.scenario.empty() || cluster.request_timeout != SimTime::max())) {
    throw InputError("--schedule-log does not go with --scenario and --request-timeout");
  }
  if (!paths.schedule_log.empty() && (cluster.replicas > 1 || cluster.disaggregated)) {
    throw InputError("--schedule-log is for a single engine, and these flags ask for more");
  }
}

struct Plan {
  std::vector<PlannedRun> planned;
  std::vector<ResolvedRun> runs;
  std::vector<std::string> inputs;  ///< files
  TraceSet traces;
};

Plan make_plan(const FlagSet& flags, const RunSpec& base, const Registries& registries) {
  std::vector<AxisValues> given = given_axes(flags);
  for (const std::string& folder : flags.values("trace-set")) {
    given = join_traces(std::move(given), traces_in(folder));
  }
  if (!flags.given("trace") && !flags.given("trace-set")) {
    throw InputError(
        "--trace FILE is missing: the requests to replay (workloads/ has some; "
        "see --help)");
  }
  check_engine_config(flags, given);
  const GoodputTargets targets = parse_goodput(flags.values("goodput"));
  const GpuHourCost price(flags.values("gpu-hour-cost"));
  Plan plan;
  plan.planned = product(base, given);
  plan.inputs = input_files(flags, given);
  Resolver resolver(registries);
  for (const PlannedRun& planned : plan.planned) {
    plan.runs.push_back(resolver.resolve(planned.spec, targets));
    plan.runs.back().gpu_hour_cost = price.of(plan.runs.back());
  }
  std::vector<const ResolvedRun*> runs;
  for (const ResolvedRun& run : plan.runs) runs.push_back(&run);
  price.check_used(runs);
  return plan;
}

/// Reads every trace, so that a fault in any shows before the first run. The resolved format goes
/// into the record of the run.
void open_traces(Plan& plan) {
  for (ResolvedRun& run : plan.runs) {
    set_trace_format(run, plan.traces.open(run.trace_path, run.trace).format());
  }
}

std::string table_of(const Plan& plan, const std::vector<std::optional<RunResult>>& results,
                     const std::optional<Comparison>& comparison, const TextStyle& style) {
  std::vector<ResultRow> rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) rows.push_back({&*results[i], plan.planned[i].varied});
  }
  const std::string title = headline(plan.runs);
  if (!comparison) return result_table(title, rows, style);
  if (!prefers_metric_tables(*comparison)) {
    return result_table(title, rows, style) + verdict_text(*comparison, style);
  }
  return fmt::format("\n {}\n\n", paint(title, kBold, style)) + metric_tables(*comparison, style) +
         result_warnings(rows, style) + verdict_text(*comparison, style);
}

std::string json_of(const RunnerOutcome& outcome, const std::optional<Comparison>& comparison,
                    const std::string& command, std::uint64_t seed) {
  std::vector<RunResult> finished;
  for (const std::optional<RunResult>& result : outcome.results) {
    if (result) finished.push_back(*result);
  }
  return result_json(finished, command, seed,
                     comparison ? comparison_json(*comparison) : nlohmann::ordered_json());
}

std::string report_of(const Plan& plan, const std::vector<std::optional<RunResult>>& results,
                      const std::string& command, std::uint64_t seed) {
  ReportInput input{command, seed, {}, {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) input.runs.push_back({&*results[i], plan.planned[i].varied});
  }
  return report_html(input);
}

/// Throws InputError for a window that is none, or of a timeline that nobody asked for.
TimelineWindow timeline_window(const FlagSet& flags) {
  if (!flags.given("timeline-window")) return {};
  if (!flags.given("timeline")) {
    throw InputError("--timeline-window needs --timeline FILE, which it bounds");
  }
  return parse_timeline_window(flags.value("timeline-window"));
}

/// Ends the timeline, if there is one, and says what it left out.
void finish_timeline(Outputs& outputs, const RunnerOutcome& outcome, bool quiet,
                     const std::string& command) {
  if (outputs.timeline() == nullptr) return;
  const RunResult& result = *outcome.results.front();
  outputs.timeline()->finish(fmt::format("{}, {}", result.trace, result.policy), command);
  const std::string warning = outputs.timeline()->warning();
  if (!quiet && !warning.empty()) fmt::print(stderr, "simulate: {}\n", warning);
}

RunSpec base_spec(const FlagSet& flags) {
  RunSpec base;
  base.engine_config = flags.value("engine-config");
  base.seed =
      static_cast<std::uint64_t>(parse_integer(flags.value("seed", "0"), "--seed", 0, INT64_MAX));
  return base;
}

}  // namespace

FlagSet simulate_flags() {
  FlagSet flags("",
                "Replays request traces through a simulated LLM server and reports what its users "
                "would see.\nOther verbs and topics: simulate help.");
  flags.group("Traces");
  add_axes(flags, Axis::Scope::kTrace);
  flags.add(
      {"trace-set", "DIR", "Every trace of a folder, by name; may be given again", Arity::kEach});
  flags.group("Engine (each takes a list: --block-size 1,16,64; the runs are the product)");
  add_axes(flags, Axis::Scope::kEngine);
  flags.add({"engine-config", "FILE",
             "Scheduler settings and a linear step time from a JSON file, instead of these flags",
             Arity::kOne});
  flags.group("Load (lists too)");
  add_axes(flags, Axis::Scope::kLoad);
  flags.group("Results");
  flags.add(
      {"goodput", "NAME:MS ...", "Latency targets: ttft:500 tpot:50 e2el:10000", Arity::kMany});
  flags.add({"gpu-hour-cost", "X|NAME:X ...",
             "Dollars per GPU and hour, for all or by --hardware: shows $ per million tokens",
             Arity::kMany});
  flags.add({"json", "FILE", "Write all results as JSON; - is stdout, instead of the table",
             Arity::kOne});
  flags.add({"requests", "FILE", "Write a row per request; .csv or .jsonl", Arity::kOne});
  flags.add({"schedule-log", "FILE", "Write every scheduler decision as JSON lines", Arity::kOne});
  flags.add({"timeline", "FILE",
             "Write a trace of steps and requests for Perfetto; .json or .json.gz", Arity::kOne});
  flags.add({"timeline-window", "START:END",
             "Seconds after the first arrival that --timeline holds [0:60]", Arity::kOne});
  flags.add(
      {"report", "FILE", "Write an HTML report of all runs; one file, opens offline", Arity::kOne});
  add_running_flags(flags);
  flags.add({"version", "", "Show the version", Arity::kNone});
  flags.footer(
      "Examples:\n"
      "  simulate --trace workloads/chat.jsonl --policy continuous\n"
      "  simulate --trace chat.jsonl --policy static,continuous,chunked --request-rate 4,8,16\n"
      "  simulate --trace azure.csv.gz --model llama-3.1-70b --tensor-parallel-size 4 --json "
      "out.json");
  return flags;
}

int run_simulate(const std::vector<std::string>& arguments, const std::string& command) {
  FlagSet flags = simulate_flags();
  if (!flags.parse(arguments)) {
    write_stdout(flags.help());
    return 0;
  }
  if (flags.given("version")) {
    write_stdout(fmt::format("servesim {}\n", version()));
    return 0;
  }
  const RunSpec base = base_spec(flags);
  const bool quiet = flags.given("quiet");
  RunnerOptions options;
  options.threads = thread_count(flags);
  options.progress = shows_progress(flags);

  Registries registries;
  register_builtins(registries);
  Plan plan = make_plan(flags, base, registries);
  const OutputPaths paths{flags.value("json"), flags.value("requests"), flags.value("schedule-log"),
                          flags.value("timeline"), flags.value("report")};
  const TimelineWindow window = timeline_window(flags);
  check_single_run_outputs(paths, plan.runs);
  check_distinct(paths, plan.inputs);
  open_traces(plan);
  catch_interrupts();
  Outputs outputs(paths, window);
  std::optional<ScheduleLogWriter> log;
  if (outputs.schedule_log() != nullptr) log.emplace(*outputs.schedule_log());
  const SeriesDetail detail = SeriesDetail::for_runs(plan.runs.size());
  options.taps = {outputs.requests(), log ? &*log : nullptr, outputs.timeline(),
                  outputs.report() ? &detail : nullptr};

  std::vector<std::uint64_t> requests;
  for (const ResolvedRun& run : plan.runs) requests.push_back(requests_of(run, plan.traces));
  std::vector<RequestColumns> columns = make_columns(plan.planned, requests);
  if (!columns.empty()) options.columns = &columns;

  const RunnerOutcome outcome = run_all(plan.runs, plan.traces, options);
  const std::optional<Comparison> comparison = compare_runs(plan.planned, outcome.results, columns);
  const std::string json = json_of(outcome, comparison, command, base.seed);
  if (!outcome.interrupted) {
    finish_timeline(outputs, outcome, quiet, command);
    outputs.commit(json,
                   outputs.report() ? report_of(plan, outcome.results, command, base.seed) : "");
  }
  if (outputs.json_on_stdout()) {
    write_stdout(json);
  } else if (!quiet) {
    write_stdout(table_of(plan, outcome.results, comparison, style_for(STDOUT_FILENO)));
  }
  if (outcome.interrupted) {
    fmt::print(stderr, "simulate: interrupted; no output file was written\n");
    return kInterruptedExit;
  }
  return 0;
}

}  // namespace servesim
