// calibrate measure: plan, run, write, fit.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "backend.hpp"
#include "core/error.hpp"
#include "host_bench.hpp"
#include "output.hpp"
#include "runner.hpp"
#include "text.hpp"
#include "verbs.hpp"

namespace servesim::calibrate {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void stop(int signal) {
  stop_signal = signal;
  std::signal(signal, SIG_DFL);  // a second one ends the program at once
}

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

/// What remains of the budget for measuring: fitting a GPU's thousand rows takes a minute.
double measuring_s(bool gpu, double budget_s) {
  constexpr double kGpuFitS = 100, kCpuFitS = 5;
  const double fit = has_fit() ? (gpu ? kGpuFitS : kCpuFitS) : 2;
  return std::max(budget_s - fit, budget_s / 2);
}

/// The machine, and what is to be known before its timings are believed.
void print_environment(const Environment& e) {
  std::printf("%s: %lld %s, %.1f GiB\n", e.device.c_str(), static_cast<long long>(e.units),
              e.cuda() ? "SMs" : "threads", e.memory_bytes / (1 << 30));
  std::printf("GEMM: %s\n", e.gemm_library.c_str());
  for (const std::string& what : state_findings(e)) std::printf("off: %s\n", what.c_str());
}

}  // namespace

namespace {

Plan plan_and_print(const SuiteLimits& limits, const Effort& effort, double run_s) {
  // A tenth is kept for what the estimates miss.
  const Plan planned = plan(suite(limits), limits, effort, 0.9 * run_s);
  constexpr double kWorthSaying = 0.8;
  if (limits.share < kWorthSaying) {
    std::printf("others use the cores: the plan counts on %.0f %% of their time\n",
                100 * limits.share);
  }
  std::printf("planned for %.0f s:\n%s", run_s, plan_table(planned).c_str());
  std::fflush(stdout);
  return planned;
}

/// A hang-up too: a lost connection must not cost ten minutes of timings.
void keep_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, stop);
}

}  // namespace

int run_measure(const Flags& flags) {
  const double budget_s = flags.number("--time-budget", 5, 86'400);
  const std::string folder = flags.text("--out"), datasheet = flags.text("--datasheet");
  const auto backend = backend_of(flags);
  print_environment(backend->environment());
  require_datasheet(backend->environment(), datasheet);
  const SuiteLimits limits = backend->limits();
  const double run_s = measuring_s(limits.gpu, budget_s);
  const Effort effort = effort_for(limits.gpu, budget_s);
  const Plan planned = plan_and_print(limits, effort, run_s);
  if (flags.has("--plan")) return 0;

  make_folder(folder);  // before ten minutes are spent, not after
  keep_on_signals();
  const HostTimes host = measure_host(30);
  const RunLimits run_limits{effort, run_s, [] { return stop_signal != 0; }, say};
  const Measurement measured = run(*backend, planned, run_limits);
  Environment environment = backend->environment();
  environment.throttling = measured.throttling;
  write_measurement(folder, measured, environment, host);
  std::printf("%zu kernels measured in %.0f s, %zu left out (%s/left_out.csv says which)\n",
              measured.timings.size(), measured.seconds, measured.left_out.size(), folder.c_str());
  for (const std::string& reason : measured.throttling) {
    std::printf("throttling during the run: %s\n", reason.c_str());
  }
  if (measured.interrupted) {
    throw InputError("interrupted; what was measured is in " + folder +
                     ", and `calibrate fit --timings " + folder +
                     " --out FILE` fits it if it suffices");
  }
  if (!has_fit()) {
    say("no profile: built without nlohmann_json, fmt and xxHash. Where they are, run: calibrate "
        "fit "
        "--timings " +
        folder + " --out profile.json");
    return 0;
  }
  fit_measurement(folder, datasheet, (std::filesystem::path(folder) / "profile.json").string());
  return 0;
}

}  // namespace servesim::calibrate
