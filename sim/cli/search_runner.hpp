/// Capacity searches over many configurations, on several threads.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/resolve.hpp"
#include "study/run_store.hpp"
#include "study/search_result.hpp"
#include "workload/trace_source.hpp"

namespace servesim {

/// One configuration to search.
struct SearchTask {
  std::vector<std::pair<std::string, std::string>> varied;
  std::optional<ResolvedRun> run;  ///< absent: it cannot be run, because of `infeasible`
  std::string infeasible;
  std::size_t predecessor;  ///< whose capacity is the first guess; a lower number, or its own
};

struct SearchOptions {
  SearchSettings settings;
  std::size_t threads = 1;
  bool progress = false;
  RunStore* store = nullptr;  ///< null: nothing is kept
  std::string trace_hash;     ///< of its content
  std::string program;        ///< version and build, part of every key
};

struct SearchOutcome {
  SearchResult result;  ///< ranked; only what was finished when `interrupted`
  bool interrupted = false;
};

/// Searches every task's capacity. The result depends neither on the number of threads nor on what
/// the store holds: a task starts from its predecessor's capacity, and runs found in the store
/// stand for those that would be made. Throws InputError of the first task that has one.
SearchOutcome run_search(const std::vector<SearchTask>& tasks, const TraceSource& trace,
                         const SearchOptions& options);

}  // namespace servesim
