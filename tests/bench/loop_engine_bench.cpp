/// The engine against the obvious one, on equal decisions.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "benchmarks.hpp"
#include "loop_engine.hpp"
#include "measure.hpp"
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
  print("Against an engine that loops over every sequence in every step (equal decisions)",
        {compare("Azure conversation, native load", setup, at_rate(0), 4),
         compare("Azure conversation, 22 requests/s (near saturation)", setup, at_rate(22), 5),
         compare("5,000 output tokens, batch 256", batch256, long_outputs, 40)});
}

}  // namespace servesim::bench
