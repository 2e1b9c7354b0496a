/// Is the table aligned, and does it mark what is best?
#include <sstream>

#include "report/result_table.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

RunResult run_of(std::string trace, std::string policy, double ttft) {
  RunResult r;
  r.trace = std::move(trace);
  r.policy = std::move(policy);
  r.metrics.total = r.metrics.completed = 19366;
  r.metrics.duration_s = 10;
  r.metrics.ttft_ms = {1, ttft, ttft, 0, ttft, ttft, ttft};
  return r;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string line_with(const std::string& text, const std::string& word) {
  for (const std::string& line : lines_of(text)) {
    if (line.find(word) != std::string::npos) return line;
  }
  return {};
}

}  // namespace

TEST_CASE("numbers as people read them") {
  CHECK(with_thousands(0) == "0");
  CHECK(with_thousands(999) == "999");
  CHECK(with_thousands(-1000) == "-1,000");
  CHECK(with_thousands(144793823) == "144,793,823");
  CHECK(short_number(0) == "0.00");
  CHECK(short_number(1.23456) == "1.235");
  CHECK(short_number(12.3456) == "12.35");
  CHECK(short_number(123.456) == "123.5");
  CHECK(short_number(999.96) == "1,000");
  CHECK(short_number(1234567.8) == "1,234,568");
}

TEST_CASE("the best of each trace is marked, once it differs") {
  const std::vector<RunResult> runs{run_of("a", "static", 900), run_of("a", "chunked", 30),
                                    run_of("b", "static", 5)};
  std::vector<ResultRow> rows;
  for (const RunResult& run : runs) rows.push_back({&run, {}});
  const std::string text = result_table("all", rows, {});
  CHECK(line_with(text, "chunked").find("*30.00") != std::string::npos);
  CHECK(line_with(text, "900.0").find('*') == std::string::npos);
  CHECK(line_with(text, "5.000").find('*') == std::string::npos);
  CHECK(line_with(text, "static").find("19,366") != std::string::npos);
  CHECK(text.find("\x1b") == std::string::npos);
}

TEST_CASE("settings that vary become columns") {
  const RunResult run = run_of("a", "chunked", 1);
  const std::vector<ResultRow> rows{{&run, {{"block-size", "1"}}}, {&run, {{"block-size", "64"}}}};
  const std::string text = result_table("all", rows, {});
  CHECK(line_with(text, "block-size") != "");
}

TEST_CASE("a narrow terminal gets fewer columns, never broken lines") {
  const RunResult run = run_of("a-trace-name", "continuous", 1);
  const std::vector<ResultRow> rows{{&run, {}}};
  for (const std::size_t width : {100U, 120U, 200U}) {
    for (const std::string& line : lines_of(result_table("h", rows, {false, width}))) {
      CHECK(display_width(line) <= width);
    }
  }
  const std::string narrow = result_table("h", rows, {false, 100});
  CHECK(line_with(narrow, "preempted") == "");
  CHECK(line_with(narrow, "TTFT") != "");
}

TEST_CASE("warnings stand once, with the runs they hold for") {
  RunResult first = run_of("a", "static", 1);
  RunResult second = run_of("a", "chunked", 1);
  first.warnings = {"everywhere", "slow"};
  second.warnings = {"everywhere"};
  const std::string text = result_table("h", {{&first, {}}, {&second, {}}}, {});
  CHECK(line_with(text, "everywhere") == " ! everywhere");
  CHECK(line_with(text, "slow") == " ! a, static: slow");
}

TEST_CASE("colour only where it is asked for") {
  const RunResult run = run_of("a", "static", 1);
  CHECK(result_table("h", {{&run, {}}}, {true, 0}).find("\x1b[1m") != std::string::npos);
}

}  // namespace servesim
