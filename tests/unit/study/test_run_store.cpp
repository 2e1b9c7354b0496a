/// Does the results database keep what it is given, and refuse what it did not write?
#include <fcntl.h>
#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.hpp"
#include "study/run_store.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

/// A folder that goes away with the object.
struct StoreFolder {
  StoreFolder() {
    std::string name = (fs::temp_directory_path() / "servesim_store_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~StoreFolder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

StoredRun complete_run(std::int64_t good) {
  StoredRun run;
  run.configuration = "c";
  run.trace = "t.jsonl";
  run.trace_hash = "h";
  run.version = "1";
  run.request_rate = 2.5;
  run.complete = true;
  run.requests = 100;
  run.misses = {good, 100 - good, 0, 1, 2, 3, 4};
  run.config = R"({"policy":"chunked"})";
  run.metrics = R"({"mean_ttft_ms":12.5})";
  return run;
}

StoredRun abandoned_run(std::int64_t missed) {
  StoredRun run = complete_run(10);
  run.complete = false;
  run.misses.missed = missed;
  run.metrics.clear();
  return run;
}

void execute_on(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
  CHECK(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
}

/// The first row of a query, values separated by |.
std::string row_of(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_prepare_v2(handle, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
  std::string row;
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
    row += (i > 0 ? "|" : "") + std::string(text == nullptr ? "NULL" : text);
  }
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  return row;
}

void check_store_refused(const std::string& path, const std::string& word, int patience_ms = 50) {
  try {
    RunStore store(path, patience_ms);
    store.put("other", complete_run(1));
    FAIL("accepted");
  } catch (const InputError& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).find(word) != std::string::npos);
    CHECK(std::string(error.what()).find(path) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a run comes back as it was put, also from a store opened again") {
  const StoreFolder folder;
  {
    RunStore store(folder.file("a"));
    CHECK_FALSE(store.find("k"));
    store.put("k", complete_run(90));
  }
  RunStore store(folder.file("a"));
  const auto found = store.find("k");
  REQUIRE(found);
  CHECK(found->complete);
  CHECK(found->configuration == "c");
  CHECK(found->request_rate == 2.5);
  CHECK(found->requests == 100);
  CHECK(found->misses.good == 90);
  CHECK(found->misses.missed == 10);
  CHECK(found->misses.e2el == 3);
  CHECK(found->misses.rejected == 4);
  CHECK(found->metrics == R"({"mean_ttft_ms":12.5})");
  CHECK_FALSE(store.find("K"));
}

TEST_CASE("a person can query the settings of a run, those of its two pools too") {
  const StoreFolder folder;
  {
    RunStore store(folder.file("a"));
    StoredRun run = complete_run(90);
    run.config = R"({"policy":"chunked","model":"m","hardware":"h","max_num_seqs":8})";
    store.put("plain", run);
    run.config = R"({"policy":"disaggregated",
                     "prefill":{"model":"m","hardware":"h","max_num_seqs":8,"replicas":2},
                     "decode":{"model":"m","hardware":"l","max_num_seqs":64,"replicas":2}})";
    store.put("pools", run);
    store.put_capacity({"c", "h", "1", "pools", 0.99, 0.01, false, "met", 2.5, 1.25, 2});
  }
  const std::string columns = "SELECT model, hardware, max_num_seqs, replicas, mean_ttft_ms FROM ";
  CHECK(row_of(folder.file("a"), columns + "results WHERE key = 'plain'") == "m|h|8|NULL|12.5");
  CHECK(row_of(folder.file("a"), columns + "results WHERE key = 'pools'") ==
        "m|h + l|8 + 64|2|12.5");
  CHECK(row_of(folder.file("a"), columns + "best") == "m|h + l|8 + 64|2|12.5");
  // SQLite before 3.38 knows no such operator.
  CHECK(row_of(folder.file("a"), "SELECT sum(instr(sql, '->')) FROM sqlite_master") == "0");
}

TEST_CASE("a complete run is never replaced, an abandoned one by what says more") {
  const StoreFolder folder;
  RunStore store(folder.file("a"));
  store.put("k", abandoned_run(5));
  store.put("k", abandoned_run(3));
  CHECK(store.find("k")->misses.missed == 5);
  store.put("k", abandoned_run(9));
  CHECK(store.find("k")->misses.missed == 9);
  store.put("k", complete_run(80));
  store.put("k", abandoned_run(99));
  CHECK(store.find("k")->complete);
  CHECK(store.find("k")->misses.good == 80);
}

TEST_CASE("files that are no results database of this version are refused") {
  const StoreFolder folder;
  std::ofstream(folder.file("text")) << std::string(5000, 'x');
  check_store_refused(folder.file("text"), "not an SQLite file");
  execute_on(folder.file("other"), "CREATE TABLE t (a)");
  check_store_refused(folder.file("other"), "another program");
  { RunStore store(folder.file("newer")); }
  execute_on(folder.file("newer"), "PRAGMA user_version = 99");
  check_store_refused(folder.file("newer"), "another version");
  check_store_refused(folder.file("no/such/folder/db"), "cannot be used");
}

TEST_CASE("a truncated database is refused, whatever is left of it") {
  const StoreFolder folder;
  {
    RunStore store(folder.file("whole"));
    for (int i = 0; i < 400; ++i) store.put("key" + std::to_string(i), complete_run(i));
  }
  const auto size = fs::file_size(folder.file("whole"));
  REQUIRE(size > 40'000);
  for (const double share : {0.2, 0.5, 0.9}) {
    const std::string path = folder.file("cut" + std::to_string(share));
    fs::copy_file(folder.file("whole"), path);
    fs::resize_file(path, static_cast<std::uintmax_t>(static_cast<double>(size) * share));
    check_store_refused(path, "damaged");
  }
}

TEST_CASE("a database that another holds locked is refused after a while") {
  const StoreFolder folder;
  { RunStore store(folder.file("a")); }
  sqlite3* holder = nullptr;
  REQUIRE(sqlite3_open(folder.file("a").c_str(), &holder) == SQLITE_OK);
  REQUIRE(sqlite3_exec(holder, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK);
  check_store_refused(folder.file("a"), "locked");
  sqlite3_close(holder);
  RunStore store(folder.file("a"));
  store.put("k", complete_run(1));
  CHECK(store.find("k"));
}

TEST_CASE("several connections may make a file at once") {
  const StoreFolder folder;
  for (int round = 0; round < 60; ++round) {
    const std::string path = folder.file("new" + std::to_string(round));
    std::array<std::string, 4> failures;
    {
      std::vector<std::jthread> makers;
      for (int i = 0; i < 4; ++i) {
        makers.emplace_back([&path, &failure = failures[static_cast<std::size_t>(i)]] {
          try {
            RunStore(path).put("k", complete_run(1));
          } catch (const InputError& error) {
            failure = error.what();
          }
        });
      }
    }
    for (const std::string& failure : failures) CHECK(failure == "");
  }
}

TEST_CASE("several connections may write at once") {
  const StoreFolder folder;
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&folder, writer] {
      RunStore store(folder.file("a"));
      for (int i = 0; i < 50; ++i) {
        store.put(std::to_string(writer) + "/" + std::to_string(i), complete_run(i));
      }
    });
  }
  writers.clear();
  RunStore store(folder.file("a"));
  for (int writer = 0; writer < 4; ++writer) {
    CHECK(store.find(std::to_string(writer) + "/49")->misses.good == 49);
  }
}

}  // namespace servesim
