#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

const std::string kSession =
    R"({"id": "trace_1", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 1, "requests": [
  {"t": 2.0, "type": "n", "in": 130, "out": 5, "hash_ids": [1, 2], "api_time": 7.0, "think_time": 0.0},
  {"t": 19.0, "type": "n", "in": 200, "out": 0, "hash_ids": [1, 2, 3], "api_time": 9.0, "think_time": 10.0},
  {"t": 40.0, "type": "s", "in": 63, "out": 4, "hash_ids": [], "think_time": null},
  {"t": 100.0, "type": "subagent", "agent_id": "x", "duration_ms": 55000, "requests": [
     {"t": 0.0, "type": "n", "in": 64, "out": 1, "hash_ids": [9], "api_time": 1.0, "think_time": 0.0},
     {"t": 4.0, "type": "n", "in": 64, "out": 2, "hash_ids": [9], "api_time": 1.0, "think_time": 3.0}]},
  {"t": 103.0, "type": "n", "in": 128, "out": 7, "hash_ids": [1, 4], "api_time": 2.0, "think_time": 63.0}
], "totals": {}})";

TEST_CASE("sessions run in closed loop, nested sub-agents in place") {
  CHECK(detected(kSession) == "sessions");
  const auto requests = requests_of(kSession);
  REQUIRE(requests.size() == 6);
  CHECK_FALSE(requests[0].closed_loop);
  CHECK(requests[0].arrival.ns() == 2 * kSecondNs);
  CHECK(requests[1].closed_loop);
  CHECK(requests[1].delay.ns() == 10 * kSecondNs);
  CHECK(requests[1].output_tokens == 0);
  CHECK(requests[2].delay.ns() == 12 * kSecondNs);  // no think_time: 40 - (19 + 9)
  CHECK(requests[3].delay.ns() == 5 * kSecondNs);   // 100 - 55 - 40
  CHECK(requests[4].delay.ns() == 3 * kSecondNs);
  CHECK(requests[5].delay.ns() == 3 * kSecondNs);  // 103 - 100
  for (const Request& request : requests) CHECK(request.session == "trace_1");
  CHECK(requests[3].hash_ids == requests[4].hash_ids);
}

TEST_CASE("hash ids are local to a session") {
  const auto requests = requests_of(kSession + "\n" + kSession);
  REQUIRE(requests.size() == 12);
  CHECK(requests[0].hash_ids[0] == requests[1].hash_ids[0]);
  CHECK(requests[0].hash_ids[0] != requests[6].hash_ids[0]);
  CHECK(requests[6].session == "trace_1#1");
  CHECK_FALSE(requests[6].closed_loop);
  CHECK(requests_of("[" + kSession + ",\n" + kSession + "]").size() == 12);
}

TEST_CASE("global hash ids stay as they are") {
  const auto requests = requests_of(
      R"({"id": "a", "block_size": 64, "hash_id_scope": "global", "requests": [{"t": 0, "in": 64, "out": 1, "hash_ids": [9]}]})");
  CHECK(requests[0].hash_ids[0] == 9);
}

TEST_CASE("sessions are refused by line and path") {
  const std::string bad =
      "\n\n"
      R"({"id": "a", "block_size": 64, "requests": [{"t": 0, "in": 64, "out": 1, "hash_ids": [9]}, {"t": 0, "in": -1, "out": 1}]})";
  CHECK(contains(refusal(bad), "trace:3: field 'requests[1].in': '-1' is not accepted"));
  CHECK(contains(
      refusal(
          R"({"id": "a", "block_size": 64, "requests": [{"t": 0, "in": 640, "out": 1, "hash_ids": [9]}]})"),
      "1 ids are not accepted; 640 tokens in blocks of 64 have 10"));
  CHECK(contains(refusal(kSession.substr(0, 300)), "trace:1: the JSON object does not end"));
  CHECK(contains(refusal("[" + kSession), "the array does not end"));
  CHECK(contains(refusal("[" + kSession + "] x"), "after the end of the array"));
}

}  // namespace
}  // namespace servesim::test
