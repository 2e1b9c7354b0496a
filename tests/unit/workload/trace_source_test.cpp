#include "workload/trace_source.hpp"

#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

const std::string kUnsorted =
    R"({"timestamp": 30, "input_length": 1, "output_length": 1})"
    "\n"
    R"({"timestamp": 10, "session_id": "a", "input_length": 2, "output_length": 1})"
    "\n"
    R"({"delay": 5, "session_id": "a", "input_length": 3, "output_length": 1})"
    "\n"
    R"({"timestamp": 20, "input_length": 4, "output_length": 1})"
    "\n"
    R"({"timestamp": 10, "input_length": 5, "output_length": 1})";

std::vector<std::int64_t> inputs(const std::vector<Request>& requests) {
  std::vector<std::int64_t> tokens;
  for (const Request& request : requests) tokens.push_back(request.input_tokens);
  return tokens;
}

TEST_CASE("unsorted traces are sorted stably; closed-loop requests follow their session") {
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    const TempFile file(kUnsorted);
    TraceOptions options;
    options.cache_bytes = cache_bytes;
    const TraceSource source(file.path(), options);
    CHECK(source.was_unsorted());
    const auto requests = read_all(*source.open());
    CHECK(inputs(requests) == std::vector<std::int64_t>{2, 3, 5, 4, 1});
    CHECK(requests[1].closed_loop);
    CHECK(requests[1].delay.ns() == 5'000'000);
    std::vector<std::uint64_t> positions;
    for (const Request& request : requests) positions.push_back(request.index);
    CHECK(positions == std::vector<std::uint64_t>{1, 2, 4, 3, 0});
  }
}

TEST_CASE("dates count from the earliest request, also when unsorted or not cached") {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const std::string sorted = header + "2023-11-16 18:15:46.5,1,1\n2023-11-16 18:15:47.5,2,1\n";
  const std::string unsorted = header + "2023-11-16 18:15:47.5,2,1\n2023-11-16 18:15:46.5,1,1\n";
  for (const std::string& content : {sorted, unsorted}) {
    for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
      TraceOptions options;
      options.cache_bytes = cache_bytes;
      const auto requests = requests_of(content, options);
      CHECK(requests[0].arrival.ns() == 0);
      CHECK(requests[1].arrival.ns() == kSecondNs);
      CHECK(inputs(requests) == std::vector<std::int64_t>{1, 2});
    }
  }
}

TEST_CASE("relative times are kept") {
  CHECK(
      requests_of(R"({"timestamp": 500, "input_length": 1, "output_length": 1})")[0].arrival.ns() ==
      500'000'000);
}

TEST_CASE("a source can be opened again and knows what it holds") {
  const TempFile file(kUnsorted);
  const TraceSource source(file.path());
  CHECK(source.format() == "mooncake");
  CHECK(source.name() == file.path());
  CHECK(source.summary().requests == 5);
  CHECK(source.summary().closed_loop == 1);
  CHECK(source.summary().input_tokens == 15);
  CHECK(source.summary().output_tokens == 5);
  const auto first = source.open();
  const auto second = source.open();
  CHECK(inputs(read_all(*first)) == inputs(read_all(*second)));
}

TEST_CASE("cached and streamed requests are the same") {
  const std::string content =
      R"({"arrival_ms": 1.5, "input_tokens": 100, "output_tokens": 5, "id": "x", "session_id": "s", "priority": 3, "hash_ids": [4], "hash_block": 64})"
      "\n"
      R"({"session_id": "s", "delay_ms": 250, "input_tokens": 200, "output_tokens": 6})"
      "\n"
      R"({"session_id": "s", "delay_ms": 350, "input_tokens": 300, "output_tokens": 7})";
  TraceOptions streamed;
  streamed.cache_bytes = 0;
  const auto a = requests_of(content);
  const auto b = requests_of(content, streamed);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].index == b[i].index);
    CHECK(a[i].id == b[i].id);
    CHECK(a[i].session == b[i].session);
    CHECK(a[i].arrival == b[i].arrival);
    CHECK(a[i].closed_loop == b[i].closed_loop);
    CHECK(a[i].delay == b[i].delay);
    CHECK(a[i].input_tokens == b[i].input_tokens);
    CHECK(a[i].output_tokens == b[i].output_tokens);
    CHECK(a[i].priority == b[i].priority);
    CHECK(a[i].hash_block == b[i].hash_block);
    CHECK(a[i].hash_ids == b[i].hash_ids);
  }
}

TEST_CASE("every format has a name, a sentence and a maker") {
  for (const TraceFormat& format : trace_formats()) {
    CHECK_FALSE(format.name.empty());
    CHECK(format.description.ends_with('.'));
    CHECK(format.make != nullptr);
  }
}

}  // namespace
}  // namespace servesim::test
