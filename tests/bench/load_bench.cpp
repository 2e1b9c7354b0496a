/// What a request and a step cost, by trace and load; each run in a process of its own.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "benchmarks.hpp"
#include "measure.hpp"
#include "synthetic.hpp"
#include "workload/load.hpp"
#include "workload/trace_source.hpp"

namespace servesim::bench {
namespace {

struct Case {
  std::string name;
  std::string trace;  ///< below the folder of public traces
  double rate = 0;    ///< requests/s; 0: the trace's own arrivals
  EngineSetup setup;
};

void run_case(const Case& c, const std::string& shared) {
  const TraceSource source(shared + "/traces/" + c.trace);
  LoadOptions load;
  if (c.rate > 0) load.request_rate = c.rate;
  double best = 1e9;
  std::int64_t steps = 0;
  for (int round = 0; round < 3; ++round) {
    CountingObserver observer;
    const auto trace = apply_load(source.open(), load);
    const double start = cpu_seconds();
    steps = 0;
    for (const EngineStats& stats : run_engine(c.setup, *trace, observer)) steps += stats.steps;
    best = std::min(best, cpu_seconds() - start);
  }
  const auto requests = static_cast<double>(source.summary().requests);
  fmt::print("| {} | {:.3g} | {:.0f} | {:.1f} | {:.1f} | {:.0f} |\n", c.name, requests / best,
             best / requests * 1e9, best / static_cast<double>(steps) * 1e9,
             static_cast<double>(steps) / requests, static_cast<double>(peak_rss_bytes()) / 1e6);
}

/// So that peak memory is the run's own.
void in_child(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

}  // namespace

void run_load_benchmarks(const std::string& shared) {
  const std::string conversation = "azure-llm-2023/AzureLLMInferenceTrace_conv.csv";
  const std::string code = "azure-llm-2023/AzureLLMInferenceTrace_code.csv";
  const std::string mooncake = "mooncake-fast25/conversation_trace.jsonl";
  EngineSetup plain;
  EngineSetup caching = plain;
  caching.prefix_caching = true;
  EngineSetup four = caching;
  four.replicas = 4;
  fmt::print("\n### By trace and load (linear step time, asynchronous scheduling)\n\n");
  fmt::print(
      "| trace and load | requests/s | ns per request | ns per step | steps per request | peak MB "
      "|\n");
  fmt::print("|---|---:|---:|---:|---:|---:|\n");
  for (const Case& c :
       {Case{"Azure conversation, native", conversation, 0, plain},
        Case{"Azure conversation, native, prefix caching", conversation, 0, caching},
        Case{"Azure conversation, 22/s", conversation, 22, plain},
        Case{"Azure conversation, 60/s (overload)", conversation, 60, plain},
        Case{"Azure code, native", code, 0, plain},
        Case{"Mooncake conversation, 4 replicas, prefix caching", mooncake, 0, four}}) {
    in_child([&] { run_case(c, shared); });
  }
}

}  // namespace servesim::bench
