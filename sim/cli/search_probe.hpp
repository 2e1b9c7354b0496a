/// The capacity search of one configuration.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cli/search_runner.hpp"
#include "study/rate_grid.hpp"

namespace servesim {

/// Evaluates tasks; safe to be used by several threads at once.
class Prober {
 public:
  Prober(const TraceSource& trace, const SearchOptions& options);

  /// The capacity of `task`, first looked for at that of `guess` (may be null). Nothing when
  /// stopped before it was found.
  std::optional<EvaluatedConfig> evaluate(const SearchTask& task, const EvaluatedConfig* guess);

  /// Ends all runs in progress.
  void stop();
  /// Requests simulated or found so far, for progress.
  std::uint64_t requests() const { return requests_; }

 private:
  struct Stopped {};
  /// Counts of the trace as `run` reads it.
  TraceCount count(const ResolvedRun& run);
  /// The run at a step of the grid, found or made. Given up once more than `allowed_misses` missed.
  StoredRun probe(const ResolvedRun& base, const TraceCount& count, int step,
                  std::int64_t allowed_misses);
  StoredRun simulate_run(const ResolvedRun& run, std::int64_t allowed_misses);
  void keep(const ResolvedRun& run, const EvaluatedConfig& result);
  std::string key_of(const ResolvedRun& run) const;

  const TraceSource& trace_;
  const SearchOptions& options_;
  RateGrid grid_;
  std::mutex mutex_;  // guards counts_ and controls_
  std::map<std::pair<std::uint64_t, std::int64_t>, TraceCount> counts_;
  std::list<RunControl> controls_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> requests_{0};
};

}  // namespace servesim
