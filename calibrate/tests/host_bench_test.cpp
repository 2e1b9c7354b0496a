// The host's stand-ins do what they say.
#include "host_bench.hpp"

#include "support/catch.hpp"
#include "text.hpp"

using namespace servesim::calibrate;

TEST_CASE("tokens decode to the text they came from", "[calibrate]") {
  const GreedyTokenizer tokenizer(500, 4);
  const std::string text = tokenizer.text(200, 9) + " \xff{}\n";
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  // The longest match is taken, which is not always the fewest: about as many as went in.
  CHECK(tokenizer.encode(tokenizer.text(200, 9)).size() < 220);
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.text(50, 1) == tokenizer.text(50, 1));
  CHECK(tokenizer.text(50, 1) != tokenizer.text(50, 2));
}

TEST_CASE("a value is taken out of a JSON body, escapes undone", "[calibrate]") {
  const std::string prompt = "a \"quote\", a \\ and\na line";
  const std::string json = "{\"model\": \"m\", \"n\": 3, \"prompt\": " + json_string(prompt) + "}";
  CHECK(json_text_value(json, "prompt") == prompt);
  CHECK(json_text_value(json, "model") == "m");
  CHECK(json_text_value(json, "absent").empty());
}

TEST_CASE("host stand-ins take time, and not a second", "[calibrate]") {
  const HostTimes times = measure_host(5);
  REQUIRE(times.measured);
  for (const double ms : {times.front_end_before_ms, times.front_end_after_ms, times.step_ms}) {
    CHECK(ms > 0);
    CHECK(ms < 1000);
  }
  CHECK(times.front_end_before_ms > times.front_end_after_ms);
}
