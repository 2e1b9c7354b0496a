/// The sections of the benchmark suite; each prints its table.
#pragma once

#include <string>

namespace servesim::bench {

/// How the cost of a request grows with output length and with the number of replicas.
void run_core_benchmarks();
/// Readers against the obvious alternatives, simulation against reading. `shared`: the folder of
/// public traces.
void run_trace_benchmarks(const std::string& shared);
/// What a request and a step cost, by trace and load.
void run_load_benchmarks(const std::string& shared);
/// The engine against one that loops over every sequence in every step.
void run_loop_engine_benchmarks(const std::string& shared);
/// Runs of blocks against a hash map of single blocks.
void run_prefix_pool_benchmark(const std::string& shared);

}  // namespace servesim::bench
