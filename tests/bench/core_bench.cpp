/// Benchmarks of the simulation core: how cost grows with what should and should not matter.
#include <fmt/format.h>

#include "benchmarks.hpp"
#include "measure.hpp"
#include "synthetic.hpp"

namespace servesim::bench {
namespace {

void output_length() {
  // Low load: requests hardly overlap, whatever their length.
  std::vector<Finding> findings;
  EngineSetup setup;
  std::vector<Alternative> lengths;
  for (const std::int64_t outputs : {200, 5000}) {
    lengths.push_back({std::to_string(outputs), [=] {
                         PoissonTrace trace({100'000,
                                             0.1 / (static_cast<double>(outputs) * 0.00503), 500,
                                             outputs});
                         CountingObserver observer;
                         run_engine(setup, trace, observer);
                       }});
  }
  race(lengths, 3);
  findings.push_back(
      figure("ns per request, 200 output tokens", lengths[0].seconds / 1e5 * 1e9, "ns"));
  findings.push_back(
      figure("ns per request, 5,000 output tokens", lengths[1].seconds / 1e5 * 1e9, "ns"));
  findings.push_back(
      ratio("5,000 against 200 output tokens", lengths[1].seconds / lengths[0].seconds, 0, 4));
  print("Output length at low load", findings);
}

void replicas() {
  // The same load per replica.
  const std::uint64_t requests = 200'000;
  EngineSetup one;
  EngineSetup many = one;
  many.replicas = 128;
  std::vector<Alternative> sizes{{"1",
                                  [=] {
                                    PoissonTrace trace({requests, 5, 1000, 200});
                                    CountingObserver observer;
                                    run_engine(one, trace, observer);
                                  }},
                                 {"128", [=] {
                                    PoissonTrace trace({requests, 5 * 128, 1000, 200});
                                    CountingObserver observer;
                                    run_engine(many, trace, observer);
                                  }}};
  race(sizes, 3);
  print("Replicas behind least-loaded routing, equal load per replica",
        {figure("ns per request, 1 replica", sizes[0].seconds / static_cast<double>(requests) * 1e9,
                "ns"),
         figure("ns per request, 128 replicas",
                sizes[1].seconds / static_cast<double>(requests) * 1e9, "ns"),
         ratio("128 replicas against 1", sizes[1].seconds / sizes[0].seconds, 0, 5)});
}

}  // namespace

void run_core_benchmarks() {
  output_length();
  replicas();
}

}  // namespace servesim::bench
