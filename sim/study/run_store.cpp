// The only file that speaks to SQLite.
#include "study/run_store.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <chrono>
#include <mutex>
#include <thread>

#include "core/error.hpp"

namespace servesim {
namespace {

constexpr int kApplicationId = 0x73657276;  // "serv"
constexpr int kSchemaVersion = 2;

constexpr const char* kTables = R"sql(
CREATE TABLE runs (
  key TEXT PRIMARY KEY, created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  version TEXT NOT NULL, configuration TEXT NOT NULL, trace TEXT NOT NULL, trace_hash TEXT NOT NULL,
  request_rate REAL NOT NULL, complete INTEGER NOT NULL, requests INTEGER NOT NULL,
  good INTEGER NOT NULL, missed INTEGER NOT NULL, unservable INTEGER NOT NULL,
  missed_ttft INTEGER NOT NULL, missed_tpot INTEGER NOT NULL, missed_e2el INTEGER NOT NULL,
  rejected INTEGER NOT NULL, config TEXT NOT NULL, metrics TEXT
) WITHOUT ROWID;
CREATE INDEX runs_by_configuration ON runs (configuration, request_rate);
CREATE TABLE capacities (
  configuration TEXT NOT NULL, trace_hash TEXT NOT NULL, version TEXT NOT NULL,
  attainment REAL NOT NULL, tolerance REAL NOT NULL, count_unservable INTEGER NOT NULL,
  status TEXT NOT NULL, max_request_rate REAL, goodput_per_gpu REAL, gpus INTEGER NOT NULL,
  run_key TEXT NOT NULL,
  PRIMARY KEY (configuration, trace_hash, version, attainment, tolerance, count_unservable)
) WITHOUT ROWID;
)sql";

/// A setting as a column: of the two pools of a disaggregated run both, where they differ.
std::string setting_column(const char* name) {
  const auto of = [name](const char* pool) {
    return fmt::format("json_extract(config, '$.{}{}')", pool, name);
  };
  return fmt::format(
      "  coalesce({0}, CASE {1} WHEN {2} THEN {1} ELSE {1} || ' + ' || {2} END) AS {3},\n", of(""),
      of("prefill."), of("decode."), name);
}

/// Not with ->>, which SQLite has from 3.38 on: people query with what they have.
std::string views() {
  std::string sql = "CREATE VIEW results AS SELECT trace,\n";
  for (const char* name :
       {"model", "hardware", "policy", "kv", "tensor_parallel_size", "pipeline_parallel_size",
        "replicas", "max_num_seqs", "max_num_batched_tokens", "block_size", "seed"}) {
    sql += setting_column(name);
  }
  sql +=
      "  request_rate, complete, requests, good, missed, unservable, missed_ttft, missed_tpot,"
      " missed_e2el, rejected,\n";
  for (const char* name :
       {"request_throughput", "request_goodput", "output_throughput", "mean_ttft_ms", "p99_ttft_ms",
        "mean_tpot_ms", "p99_tpot_ms", "p99_e2el_ms"}) {
    sql += fmt::format("  json_extract(metrics, '$.{0}') AS {0},\n", name);
  }
  return sql + R"sql(  created_at, version, configuration, key FROM runs;
CREATE VIEW best AS SELECT
  c.max_request_rate, c.goodput_per_gpu, c.gpus, c.status, c.attainment, r.trace, r.model,
  r.hardware, r.policy, r.kv, r.tensor_parallel_size, r.pipeline_parallel_size, r.replicas,
  r.max_num_seqs, r.max_num_batched_tokens, r.block_size, r.output_throughput, r.mean_ttft_ms,
  r.p99_ttft_ms, r.mean_tpot_ms, r.p99_tpot_ms, c.version, c.configuration
FROM capacities c LEFT JOIN results r ON r.key = c.run_key
ORDER BY c.goodput_per_gpu DESC;
)sql";
}

constexpr const char* kFind =
    "SELECT version, configuration, trace, trace_hash, request_rate, complete, requests, good, "
    "missed, unservable, missed_ttft, missed_tpot, missed_e2el, rejected, config, metrics "
    "FROM runs WHERE key = ?1";
constexpr const char* kPut =
    "INSERT INTO runs (version, configuration, trace, trace_hash, request_rate, complete, "
    "requests, good, missed, unservable, missed_ttft, missed_tpot, missed_e2el, rejected, config, "
    "metrics, key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
    "?17) ON CONFLICT (key) DO UPDATE SET complete = excluded.complete, good = excluded.good, "
    "missed = excluded.missed, unservable = excluded.unservable, "
    "missed_ttft = excluded.missed_ttft, missed_tpot = excluded.missed_tpot, "
    "missed_e2el = excluded.missed_e2el, rejected = excluded.rejected, metrics = excluded.metrics "
    "WHERE NOT runs.complete AND (excluded.complete OR "
    "excluded.missed + excluded.unservable > runs.missed + runs.unservable)";
constexpr const char* kPutCapacity =
    "INSERT OR REPLACE INTO capacities (configuration, trace_hash, version, run_key, attainment, "
    "tolerance, count_unservable, status, max_request_rate, goodput_per_gpu, gpus) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

class LockedError : public InputError {
 public:
  using InputError::InputError;
};

/// A prepared statement that is reset when it goes out of use.
class Use {
 public:
  explicit Use(sqlite3_stmt* statement) : statement_(statement) {}
  ~Use() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  Use& bind(const std::string& value) {
    sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  Use& bind(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Use& bind(double value) {
    sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  Use& bind(const std::optional<double>& value) { return value ? bind(*value) : skip(); }
  /// Leaves the next one NULL.
  Use& skip() {
    ++bound_;
    return *this;
  }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes == nullptr
               ? std::string()
               : std::string(bytes,
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

}  // namespace

/// The connection; its callers hold the lock.
class RunStore::Database {
 public:
  Database(const std::string& path, int patience_ms) : path_(path), patience_ms_(patience_ms) {
    // SQLite waits for a lock, but not where waiting could be for ever: when two make a file or
    // change its journal at the same time, one is sent away at once. It comes again.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (true) {
      try {
        connect();
        return;
      } catch (const LockedError&) {
        close();
        if (std::chrono::steady_clock::now() > deadline) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      } catch (...) {
        close();
        throw;
      }
    }
  }
  ~Database() { close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  sqlite3_stmt* find = nullptr;
  sqlite3_stmt* put = nullptr;
  sqlite3_stmt* put_capacity = nullptr;
  std::mutex mutex;

  /// Takes a step; true when there is a row.
  bool step(sqlite3_stmt* statement) {
    const int code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) fail(code);
    return code == SQLITE_ROW;
  }

 private:
  void connect() {
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    if (const int code = sqlite3_open_v2(path_.c_str(), &handle_, kFlags, nullptr); code != 0) {
      fail(code);
    }
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_busy_timeout(handle_, patience_ms_);
    check_whole();
    // In one transaction: another process may be making the file between two statements.
    execute("BEGIN");
    require_ours();
    execute("COMMIT");
    execute("PRAGMA journal_mode = WAL");
    // Enough for a killed process: the log is the file system's. Only a power cut can lose the
    // last runs, never the file.
    execute("PRAGMA synchronous = NORMAL");
    if (pragma("PRAGMA user_version") == "0") create();
    for (const auto& [text, statement] :
         {std::pair(kFind, &find), std::pair(kPut, &put), std::pair(kPutCapacity, &put_capacity)}) {
      if (const int code =
              sqlite3_prepare_v3(handle_, text, -1, SQLITE_PREPARE_PERSISTENT, statement, nullptr);
          code != 0) {
        fail(code);
      }
    }
  }

  void close() {
    for (sqlite3_stmt** statement : {&find, &put, &put_capacity}) {
      sqlite3_finalize(*statement);
      *statement = nullptr;
    }
    sqlite3_close_v2(handle_);
    handle_ = nullptr;
  }

  void execute(const char* sql) {
    if (const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr); code != 0) {
      fail(code);
    }
  }

  std::string pragma(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (const int code = sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr); code != 0) {
      fail(code);
    }
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> guard(statement, sqlite3_finalize);
    return step(statement) ? Use(statement).text(0) : std::string();
  }

  /// A truncated file opens; reading its pages is what finds out.
  void check_whole() {
    if (pragma("PRAGMA quick_check(1)") != "ok") fail(SQLITE_CORRUPT);
  }

  /// Throws unless the file is new or of this schema.
  void require_ours() {
    const int application = std::stoi(pragma("PRAGMA application_id"));
    const int schema = std::stoi(pragma("PRAGMA user_version"));
    const bool empty = pragma("SELECT count(*) FROM sqlite_master") == "0";
    if (empty && application == 0 && schema == 0) return;
    if (application != kApplicationId) {
      throw InputError(fmt::format(
          "{}: an SQLite file of another program; --results-db takes a new file, or one that "
          "`simulate search` made",
          path_));
    }
    if (schema != kSchemaVersion) {
      throw InputError(fmt::format(
          "{}: a results database of another version of servesim (its layout is {}, this "
          "version's {}); name a new file, or export it with the version that made it",
          path_, schema, kSchemaVersion));
    }
  }

  /// Another process may be making the same file: who gets the lock first makes it, the other
  /// finds it made.
  void create() {
    execute("BEGIN IMMEDIATE");
    require_ours();
    if (pragma("PRAGMA user_version") == "0") {
      execute(kTables);
      execute(views().c_str());
      execute(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
      execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
    }
    execute("COMMIT");
  }

  [[noreturn]] void fail(int code) const {
    const int kind = code & 0xff;
    if (kind == SQLITE_NOTADB) {
      throw InputError(fmt::format("{}: is no results database (not an SQLite file)", path_));
    }
    if (kind == SQLITE_CORRUPT) {
      throw InputError(fmt::format(
          "{}: the results database is damaged or truncated; restore it, or name a new file",
          path_));
    }
    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED) {
      throw LockedError(
          fmt::format("{}: the results database is locked by another process (waited {} s)", path_,
                      patience_ms_ / 1000));
    }
    throw InputError(
        fmt::format("{}: the results database cannot be used: {}", path_,
                    handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_)));
  }

  std::string path_;
  int patience_ms_;
  sqlite3* handle_ = nullptr;
};

RunStore::RunStore(const std::string& path, int patience_ms)
    : database_(std::make_unique<Database>(path, patience_ms)) {}
RunStore::~RunStore() = default;

std::optional<StoredRun> RunStore::find(const std::string& key) {
  const std::lock_guard lock(database_->mutex);
  Use row(database_->find);
  row.bind(key);
  if (!database_->step(database_->find)) return std::nullopt;
  StoredRun run;
  run.version = row.text(0);
  run.configuration = row.text(1);
  run.trace = row.text(2);
  run.trace_hash = row.text(3);
  run.request_rate = row.number(4);
  run.complete = row.integer(5) != 0;
  run.requests = row.integer(6);
  SloMisses& m = run.misses;
  const std::array<std::int64_t*, 7> counts{&m.good, &m.missed, &m.unservable, &m.ttft,
                                            &m.tpot, &m.e2el,   &m.rejected};
  for (std::size_t i = 0; i < counts.size(); ++i) *counts[i] = row.integer(7 + static_cast<int>(i));
  run.config = row.text(14);
  run.metrics = row.text(15);
  return run;
}

void RunStore::put(const std::string& key, const StoredRun& run) {
  const std::lock_guard lock(database_->mutex);
  const SloMisses& m = run.misses;
  Use use(database_->put);
  use.bind(run.version).bind(run.configuration).bind(run.trace).bind(run.trace_hash);
  use.bind(run.request_rate).bind(std::int64_t{run.complete}).bind(run.requests);
  for (const std::int64_t count :
       {m.good, m.missed, m.unservable, m.ttft, m.tpot, m.e2el, m.rejected}) {
    use.bind(count);
  }
  use.bind(run.config);
  run.metrics.empty() ? use.skip() : use.bind(run.metrics);
  use.bind(key);
  database_->step(database_->put);
}

void RunStore::put_capacity(const StoredCapacity& c) {
  const std::lock_guard lock(database_->mutex);
  Use use(database_->put_capacity);
  use.bind(c.configuration).bind(c.trace_hash).bind(c.version).bind(c.run_key);
  use.bind(c.attainment).bind(c.tolerance).bind(std::int64_t{c.count_unservable}).bind(c.status);
  use.bind(c.max_request_rate).bind(c.goodput_per_gpu).bind(c.gpus);
  database_->step(database_->put_capacity);
}

}  // namespace servesim
