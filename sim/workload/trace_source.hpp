/// A trace that can be replayed any number of times.
#pragma once

#include <memory>
#include <string>

#include "workload/input_file.hpp"
#include "workload/sorted_runs.hpp"
#include "workload/trace_cache.hpp"
#include "workload/trace_format.hpp"
#include "workload/trace_options.hpp"
#include "workload/trace_reader.hpp"

namespace servesim {

/// What a trace holds, known once it has been read.
struct TraceSummary {
  std::uint64_t requests = 0;
  std::uint64_t closed_loop = 0;  ///< requests that start after another of their session
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  SimTime first_arrival;  ///< before any shift of its origin
  SimTime last_arrival;
};

/// Reads a whole trace once when it is made, so that a fault anywhere in it shows before a run
/// starts, and replays it from memory when it is small enough, else from the file. The readers it
/// opens keep the promises of TraceReader: unsorted traces are sorted (on disk, when they are
/// large) and dates count from the earliest one.
class TraceSource {
 public:
  /// `path` may be `-` for stdin. Throws InputError for everything that is wrong with the trace.
  explicit TraceSource(const std::string& path, TraceOptions options = {});
  explicit TraceSource(std::shared_ptr<const InputFile> file, TraceOptions options = {});

  /// A fresh reader from the start; readers are independent, also across threads.
  std::unique_ptr<TraceReader> open() const;

  const std::string& name() const { return file_->name(); }
  const std::string& format() const { return format_->name; }
  bool was_unsorted() const { return unsorted_; }
  const TraceSummary& summary() const { return summary_; }

 private:
  void read_once();

  std::shared_ptr<const InputFile> file_;
  TraceOptions options_;
  const TraceFormat* format_;
  TraceSummary summary_;
  SimTime origin_;
  bool unsorted_ = false;
  std::shared_ptr<const TraceCache> cache_;  ///< null: the trace is larger than the cache may be
  std::shared_ptr<const SortedRuns>
      sorted_;  ///< instead of the file, when that is unsorted and large
};

}  // namespace servesim
