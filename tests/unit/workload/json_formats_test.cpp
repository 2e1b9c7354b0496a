#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

TEST_CASE("mooncake: milliseconds, blocks of 512, equal timestamps in file order, duplicates") {
  const auto requests = requests_of(
      R"({"timestamp": 0, "input_length": 1025, "output_length": 1, "hash_ids": [0, 14, 15]})"
      "\n"
      R"({"timestamp": 3000, "input_length": 512, "output_length": 2, "hash_ids": [0]})"
      "\n"
      R"({"timestamp": 3000, "input_length": 512, "output_length": 2, "hash_ids": [0]})"
      "\n"
      R"({"timestamp": 3000.25, "input_length": 9, "output_length": 3})");
  REQUIRE(requests.size() == 4);
  CHECK(requests[0].hash_block == 512);
  CHECK(requests[0].hash_ids == std::vector<std::uint64_t>{0, 14, 15});
  CHECK(requests[1].arrival.ns() == 3 * kSecondNs);
  CHECK(requests[2].hash_ids == requests[1].hash_ids);
  CHECK(requests[3].arrival.ns() == 3'000'250'000);
  CHECK(requests[3].hash_block == 0);
}

TEST_CASE("mooncake: sessions, closed loop, Dynamo's and AIPerf's spellings") {
  const auto requests = requests_of(
      R"({"timestamp": 5, "session_id": "a", "input_length": 10, "output_length": 4, "priority": -2})"
      "\n"
      R"({"session_id": "a", "delay": 12.5, "input_tokens": 20, "output_tokens": 4})"
      "\n"
      R"({"session_id": 7, "delay_ms": 3, "input_tokens": 30, "output_tokens": 4, "request_id": "r1"})"
      "\n"
      R"({"session_id": 7, "input_tokens": 40, "output_tokens": 4, "extra": {"x": [1, null]}})"
      "\n"
      R"({"created_time": 6, "delay": null, "input_tokens": 50, "output_tokens": 4})");
  REQUIRE(requests.size() == 5);
  CHECK_FALSE(requests[0].closed_loop);
  CHECK(requests[0].priority == -2);
  CHECK(requests[1].closed_loop);
  CHECK(requests[1].session == "a");
  CHECK(requests[1].delay.ns() == 12'500'000);
  CHECK_FALSE(requests[2].closed_loop);
  CHECK(requests[2].arrival.ns() == 5'000'000);
  CHECK(requests[2].session == "7");
  CHECK(requests[2].id == "r1");
  CHECK(requests[3].closed_loop);
  CHECK(requests[3].delay.ns() == 0);
  CHECK(requests[4].arrival.ns() == 6'000'000);
}

TEST_CASE("timed_trace: the same names with seconds and blocks of 16") {
  const std::string row =
      R"({"timestamp": 1.5, "input_length": 33, "output_length": 2, "hash_ids": [1, 2, 3]})";
  const auto requests = requests_of(row, format("timed_trace"));
  CHECK(requests[0].arrival.ns() == 1'500'000'000);
  CHECK(requests[0].hash_block == 16);
  CHECK(contains(refusal(row), "--hash-block-size 16 would fit"));
  CHECK(contains(refusal(row), "--time-unit s"));
  TraceOptions options;
  options.hash_block_size = 16;
  options.time_unit = TimeUnit::kSeconds;
  CHECK(requests_of(row, options)[0].arrival == requests[0].arrival);
}

TEST_CASE("bailian: turn chains share a session") {
  const std::string content =
      R"({"chat_id": 0, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 17, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [5, 6]})"
      "\n"
      R"({"chat_id": 1, "parent_chat_id": 0, "timestamp": 2, "input_length": 40, "output_length": 3, "type": "thinking", "turn": 2, "hash_ids": [5, 7, 8]})"
      "\n"
      R"({"chat_id": 2, "parent_chat_id": 1, "timestamp": 3, "input_length": 4, "output_length": 3, "type": "image", "turn": 3})"
      "\n"
      R"({"chat_id": 3, "parent_chat_id": 99, "timestamp": 4, "input_length": 4, "output_length": 3, "type": "file", "turn": 2})";
  CHECK(detected(content) == "bailian");
  const auto requests = requests_of(content);
  CHECK(requests[0].arrival.ns() == 500'000'000);
  CHECK(requests[0].hash_block == 16);
  CHECK(requests[2].session == "0");
  CHECK(requests[2].session == requests[0].session);
  CHECK_FALSE(requests[2].closed_loop);
  CHECK(requests[3].session == "99");
}

TEST_CASE("servesim: all fields") {
  const auto requests = requests_of(
      "# simulate generate --spec chat\n"
      R"({"arrival_s": 1.5, "input_tokens": 100, "output_tokens": 5, "id": "x", "session_id": "s", "priority": 3, "hash_ids": [18446744073709551615], "hash_block": 64})"
      "\n"
      R"({"session_id": "s", "delay_ms": 250, "input_tokens": 200, "output_tokens": 5})"
      "\n"
      R"({"arrival_ms": 1500.5, "input_tokens": 0, "output_tokens": 0})");
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].id == "x");
  CHECK(requests[0].priority == 3);
  CHECK(requests[0].hash_ids[0] == UINT64_MAX);
  CHECK(requests[0].hash_block == 64);
  CHECK(requests[1].closed_loop);
  CHECK(requests[1].delay.ns() == 250'000'000);
  CHECK(requests[2].arrival.ns() == 1'500'500'000);
  CHECK(requests[2].output_tokens == 0);
}

TEST_CASE("sharegpt: turns 0 and 1, four characters a token, rounded up") {
  const std::string content = R"([
    {"id": "a", "conversations": [{"from": "human", "value": "12345"}, {"from": "gpt", "value": "üüüü"},
                                  {"from": "human", "value": "ignored"}]},
    {"id": "b", "conversations": [{"from": "human", "value": "alone"}]},
    {"id": "c", "conversations": [{"value": "x"}, {"value": "[\"}"}], "input_tokens": 50, "output_tokens": 60}
  ])";
  CHECK(detected(content) == "sharegpt");
  const auto requests = requests_of(content);
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].id == "a");
  CHECK(requests[0].input_tokens == 2);
  CHECK(requests[0].output_tokens == 1);
  CHECK(requests[1].input_tokens == 50);
  CHECK(requests[1].output_tokens == 60);
  CHECK(requests[1].arrival.ns() == 0);
}

TEST_CASE("llmservingsim: flat rows and sessions") {
  const auto requests = requests_of(
      R"({"input_toks": 10, "output_toks": 2, "arrival_time_ns": 5, "input_tok_ids": [1, 2]})"
      "\n"
      R"({"session_id": "s", "arrival_time_ns": 100, "sub_requests": [{"input_toks": 1, "output_toks": 2, "tool_duration_ns": 70}, {"input_toks": 3, "output_toks": 4, "tool_duration_ns": 0}]})");
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].arrival.ns() == 5);
  CHECK(requests[1].arrival.ns() == 100);
  CHECK(requests[1].session == "s");
  CHECK(requests[2].closed_loop);
  CHECK(requests[2].delay.ns() == 70);
  CHECK(requests[2].index == 2);
}

TEST_CASE("schedule-case: microseconds, block given or 16") {
  const auto requests = requests_of(
      R"({"id": "q0", "arrival_us": 7, "output_len": 69, "priority": 1, "hash_ids": [1000, 1001], "prompt_len": 12, "hash_block": 8})"
      "\n"
      R"({"id": "q1", "arrival_us": 1000, "output_len": 9, "hash_ids": [4, 5], "prompt_len": 27})");
  CHECK(requests[0].arrival.ns() == 7000);
  CHECK(requests[0].priority == 1);
  CHECK(requests[0].hash_block == 8);
  CHECK(requests[1].hash_block == 16);
}

}  // namespace
}  // namespace servesim::test
