/// servesim_bench [SECTION...]: core, traces, loads, loop, pool; all without arguments.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "benchmarks.hpp"

#include <fmt/format.h>

int main(int argc, char** argv) {
  const std::vector<std::string> chosen(argv + 1, argv + argc);
  const auto wanted = [&](const char* section) {
    return chosen.empty() || std::find(chosen.begin(), chosen.end(), section) != chosen.end();
  };
  const char* given = std::getenv("SERVESIM_SHARED");
  const std::string shared = given != nullptr ? given : SERVESIM_SHARED_DIR;
  if (wanted("core")) servesim::bench::run_core_benchmarks();
  if (!std::filesystem::is_directory(shared)) {
    fmt::print("\nskipped: the public traces are not at {}\n", shared);
    return 0;
  }
  if (wanted("traces")) servesim::bench::run_trace_benchmarks(shared);
  if (wanted("loads")) servesim::bench::run_load_benchmarks(shared);
  if (wanted("loop")) servesim::bench::run_loop_engine_benchmarks(shared);
  if (wanted("pool")) servesim::bench::run_prefix_pool_benchmark(shared);
}
