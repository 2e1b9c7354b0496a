/// Every run of a search in an SQLite file, so that none is made twice. docs/search.md describes
/// the tables and views.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "study/slo_probe.hpp"

namespace servesim {

/// One run, complete or abandoned.
struct StoredRun {
  std::string configuration;  ///< hash of all that can change the result but the request rate
  std::string trace, trace_hash, version;
  double request_rate = 0;
  bool complete = false;  ///< false: ended once the target was out of reach
  std::int64_t requests = 0;
  SloMisses misses;     ///< of what was seen
  std::string config;   ///< JSON: everything resolved
  std::string metrics;  ///< JSON: the result's figures; empty unless complete
};

/// The outcome of one capacity search, for those who query the file; the program does not read it.
struct StoredCapacity {
  std::string configuration, trace_hash, version, run_key;
  double attainment = 0, tolerance = 0;
  bool count_unservable = false;
  std::string status;
  std::optional<double> max_request_rate, goodput_per_gpu;
  std::int64_t gpus = 1;
};

/// A write-ahead log keeps what was committed whatever happens to the process; each put() is a
/// transaction of its own. Several threads and several processes may share a file. All members
/// throw InputError for what is wrong with the file: it cannot be opened, is no such database, was
/// written by another version, is damaged, stays locked for ten seconds.
class RunStore {
 public:
  /// Opens `path`, which is made if it is not there; waits `patience_ms` for a lock.
  explicit RunStore(const std::string& path, int patience_ms = 10'000);
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  std::optional<StoredRun> find(const std::string& key);
  /// Keeps `run`, unless a complete run stands there, or one that saw more misses.
  void put(const std::string& key, const StoredRun& run);
  void put_capacity(const StoredCapacity& capacity);

 private:
  class Database;
  std::unique_ptr<Database> database_;
};

}  // namespace servesim
