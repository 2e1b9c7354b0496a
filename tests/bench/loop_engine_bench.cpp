/// The engine against the obvious one, on equal decisions.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "benchmarks.hpp"
#include "loop_engine.hpp"
#include "measure.hpp"
#include "support/replay.hpp"
#include "workload/load.hpp"
#include "workload/trace_source.hpp"

namespace servesim::bench {
namespace {

using OpenTrace = std::function<std::unique_ptr<TraceReader>()>;

Finding compare(const std::string& what, const EngineSetup& setup, const OpenTrace& open,
                double at_least) {
  LoopEngine::Result expected;
  CountingObserver observer;
  std::vector<Alternative> engines{{"loop", [&] { expected = LoopEngine(setup).run(*open()); }},
                                   {"production", [&] {
                                      observer = CountingObserver{};
                                      run_engine(setup, *open(), observer);
                                    }}};
  race(engines, 3);
  if (observer.checksum != expected.checksum || observer.requests != expected.completed) {
    throw std::logic_error("the two engines disagree: " + what);
  }
  return ratio(what, engines[0].seconds / engines[1].seconds, at_least, 0);
}

/// The oracle of the tests with prefix caching off, on `requests` of the trace.
Finding compare_with_oracle(const std::string& what, const OpenTrace& open, std::size_t requests,
                            std::int64_t max_num_seqs, double at_least) {
  std::vector<oracle::Request> list;
  Request request;
  const auto trace = open();
  while (list.size() < requests && trace->next(request)) {
    list.push_back({std::to_string(request.index),
                    request.arrival.ns(),
                    0,
                    request.input_tokens,
                    request.output_tokens,
                    {},
                    0});
  }
  oracle::Config config;
  config.num_gpu_blocks = 100'000;
  config.max_num_seqs = max_num_seqs;
  config.max_num_batched_tokens = 8192;
  config.max_model_len = 131'072;
  config.enable_prefix_caching = false;
  const testing::AffinePrice price{5'000'000, 30'000, 0};
  testing::Outcome expected;
  testing::Outcome actual;
  std::vector<Alternative> engines{
      {"oracle", [&] { expected = testing::run_oracle(config, list, price); }},
      {"production", [&] { actual = testing::run_engine(config, list, price); }}};
  race(engines, 1);
  const std::string difference = testing::difference(expected, actual);
  if (!difference.empty())
    throw std::logic_error("the engine and the oracle disagree: " + difference);
  return ratio(what, engines[0].seconds / engines[1].seconds, at_least, 0);
}

}  // namespace

void run_loop_engine_benchmarks(const std::string& shared) {
  const TraceSource azure(shared + "/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv");
  const auto at_rate = [&](double rate) -> OpenTrace {
    return [&azure, rate] {
      LoadOptions load;
      if (rate > 0) load.request_rate = rate;
      return apply_load(azure.open(), load);
    };
  };
  EngineSetup setup;
  setup.async_scheduling = false;
  EngineSetup batch256 = setup;
  batch256.max_num_seqs = 256;
  batch256.num_gpu_blocks = 100'000;
  const OpenTrace long_outputs = [] {
    return std::make_unique<PoissonTrace>(PoissonLoad{2000, 0, 200, 5000});
  };
  print("Against the oracle engine of the tests, block counts only (equal to the nanosecond)",
        {compare_with_oracle("Azure conversation, native load, 1,000 requests", at_rate(0), 1000,
                             1024, 4),
         compare_with_oracle("Azure conversation, 22 requests/s, 1,000 requests", at_rate(22), 1000,
                             1024, 5),
         compare_with_oracle("5,000 output tokens, batch 256, 256 requests", long_outputs, 256, 256,
                             40)});
  print(
      "Against a lean engine that loops over every sequence in every step (equal decisions; no "
      "bound is set for it)",
      {compare("Azure conversation, native load", setup, at_rate(0), 4),
       compare("Azure conversation, 22 requests/s (near saturation)", setup, at_rate(22), 5),
       compare("5,000 output tokens, batch 256", batch256, long_outputs, 40)});
}

}  // namespace servesim::bench
