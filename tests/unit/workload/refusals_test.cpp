#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

const std::string kGood = R"({"timestamp": 1, "input_length": 10, "output_length": 2})"
                          "\n";
const std::string kVidur = "arrived_at,num_prefill_tokens,num_decode_tokens\n";

std::string second_line(const std::string& row) {
  return refusal(kGood + row);
}

TEST_CASE("broken JSON rows are refused by line") {
  CHECK(contains(second_line("{\"timestamp\": 1,"), "trace:2: is not valid JSON"));
  CHECK(contains(second_line(R"({"timestamp": NaN, "input_length": 1, "output_length": 1})"),
                 "NaN and Infinity"));
  CHECK(contains(second_line(R"({"timestamp": 1, "input_length": 1, "output_length": 1} x)"),
                 "trace:2: is not valid JSON"));
  CHECK(
      contains(second_line(R"({"timestamp": 1, "input_length": 1, "output_length": 1, "z": tru})"),
               "trace:2: is not valid JSON"));
  CHECK(contains(second_line("[1]"), "trace:2: 'an array' is not accepted; a JSON object is"));
  CHECK(contains(second_line(R"({"timestamp": 1, "input_length": 1, "output_length": 1, "deep": )" +
                             std::string(100'000, '[') + std::string(100'000, ']') + "}"),
                 "trace:2: is not valid JSON"));
  CHECK(contains(second_line(std::string(100'000, '[')), "trace:2: is not valid JSON"));
}

TEST_CASE("keys given twice, missing or misspelt are refused") {
  CHECK(contains(
      second_line(R"({"timestamp": 1, "timestamp": 1, "input_length": 1, "output_length": 1})"),
      "trace:2: field 'timestamp' is given twice"));
  CHECK(contains(
      second_line(R"({"timestamp": 1, "input_length": 1, "output_length": 1, "x": 1, "x": 1})"),
      "trace:2: field 'x' is given twice"));
  CHECK(contains(second_line(R"({"timestamp": 1, "input_lenght": 1, "output_length": 1})"),
                 "trace:2: field 'input_length' is missing; is 'input_lenght' meant for it?"));
  CHECK(contains(second_line(R"({"input_length": 1, "output_length": 1})"),
                 "field 'timestamp' is missing"));
  CHECK(contains(
      second_line(R"({"timestamp": 1, "input_length": 1, "input_tokens": 1, "output_length": 1})"),
      "only one is accepted"));
  const std::string own = R"({"arrival_ms": 1, "input_tokens": 1, "output_tokens": 1)";
  CHECK(contains(refusal(own + "}\n" + own + R"(, "prority": 1})"),
                 "trace:2: unknown field 'prority'; did you mean 'priority'?"));
  CHECK(contains(refusal(own + R"(, "delay_ms": 1})"), "field 'delay_ms' is not accepted"));
  CHECK(contains(refusal(own + R"(, "hash_ids": [1]})"), "field 'hash_block' is missing"));
}

TEST_CASE("lengths must be whole and within range") {
  for (const std::string bad : {"-1", "1.5", "2147483648", "9223372036854775808", "1e300", "\"7\"",
                                "[]", "true", "18446744073709551615"}) {
    const std::string message =
        second_line(R"({"timestamp": 1, "output_length": 1, "input_length": )" + bad + "}");
    INFO(bad << " -> " << message);
    CHECK(contains(message, "trace:2: "));
    CHECK(contains(message, "a whole number of tokens from 0 to 2147483647"));
  }
  CHECK(contains(second_line(R"({"timestamp": 1, "output_length": 1, "input_length": 1e400})"),
                 "trace:2: is not valid JSON"));
  for (const std::string bad : {"-1", "1.5", "2147483648", "9223372036854775808",
                                "18446744073709551617", "nan", "inf", "", "x", "1 2", "0x10"}) {
    const std::string message = refusal(kVidur + "0,1,1\n1," + bad + ",1\n");
    INFO(bad << " -> " << message);
    CHECK(contains(message, "trace:3: field 'num_prefill_tokens': '" + bad + "' is not accepted"));
  }
}

TEST_CASE("times must be finite, positive and not absurd") {
  for (const std::string bad : {"-1", "1e300", "1e13", "\"1\"", "18446744073709551615", "{}"}) {
    const std::string message =
        second_line(R"({"input_length": 1, "output_length": 1, "timestamp": )" + bad + "}");
    INFO(bad << " -> " << message);
    CHECK(contains(message, "trace:2: field 'timestamp': "));
  }
  for (const std::string bad : {"-0.5", "nan", "inf", "1e10", "1e999", "", "1:30"}) {
    const std::string message = refusal(kVidur + "0,1,1\n" + bad + ",1,1\n");
    INFO(bad << " -> " << message);
    CHECK(contains(message, "trace:3: field 'arrived_at': '" + bad + "' is not accepted"));
  }
  for (const std::string bad :
       {"2023-13-16 18:15:46.68", "2023-02-29 18:15:46.68", "2023-11-16 24:15:46.68",
        "2023-11-16 18:15:46.", "2023-11-16 18:15:46.1234567890", "2023-11-16 18:15:46.68+0",
        "16/11/2023 18:15", "1700158546.68", "", "2023-11-16 18:15:60.0"}) {
    const std::string message =
        refusal("TIMESTAMP,ContextTokens,GeneratedTokens\n" + bad + ",374,44\n");
    INFO(bad << " -> " << message);
    CHECK(contains(message, "trace:2: field 'TIMESTAMP': '" + bad + "' is not accepted"));
  }
}

TEST_CASE("CSV: wrong number of fields, missing, misspelt and doubled columns") {
  CHECK(contains(refusal(kVidur + "0,1,1\n1,2\n"),
                 "trace:3: the row has 2 fields, the header has 3"));
  CHECK(contains(refusal(kVidur + "0,1,1,9\n"), "trace:2: the row has 4 fields"));
  CHECK(contains(refusal("TIMESTAMP,ContextToken,GeneratedTokens\n"),
                 "trace:1: the header lacks column 'ContextTokens'; is 'ContextToken' meant?"));
  CHECK(contains(refusal("arrived_at,num_prefill_tokens,num_prefill_tokens,num_decode_tokens\n"),
                 "trace:1: the header names column 'num_prefill_tokens' twice"));
  CHECK(contains(refusal(kVidur), "trace: holds no request"));
  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  CHECK(contains(refusal(azure + "2023-11-16 18:15:46.6805900,374\n"), "trace:2: the row has 2"));
  CHECK(contains(refusal(azure + "2023-11-16 18:15:46.6805900,-374,44\n"),
                 "trace:2: field 'ContextTokens': '-374' is not accepted"));
  CHECK(contains(refusal(azure + "2023-11-16 18:15:46.6805900,374,99999999999\n"),
                 "field 'GeneratedTokens': '99999999999'"));
}

TEST_CASE("hash ids: their number and their values") {
  const auto row = [](const std::string& input, const std::string& ids) {
    return R"({"timestamp": 1, "output_length": 1, "input_length": )" + input +
           R"(, "hash_ids": )" + ids + "}";
  };
  CHECK(second_line(row("1024", "[1, 2]")) == "no error");
  CHECK(second_line(row("1025", "[1, 2]")) == "no error");
  CHECK(second_line(row("1025", "[1, 2, 3]")) == "no error");
  CHECK(contains(second_line(row("1025", "[1]")), "trace:2: field 'hash_ids': 1 ids"));
  CHECK(contains(second_line(row("6400", "[" + std::string(99 * 3, ' ') + "1]")),
                 "--hash-block-size"));
  CHECK(contains(second_line(row("1025", "[]")), "leave the field out"));
  CHECK(contains(second_line(row("512", "[-1]")), "field 'hash_ids': '-1' is not accepted"));
  CHECK(contains(second_line(row("512", "[1.5]")), "'1.5'"));
  CHECK(contains(second_line(row("512", "7")), "an array"));
}

TEST_CASE("ids may not repeat") {
  const std::string row = R"({"arrival_ms": 1, "input_tokens": 1, "output_tokens": 1, "id": )";
  CHECK(contains(refusal(row + "\"a\"}\n" + row + "\"b\"}\n" + row + "\"a\"}\n"),
                 "trace:3: field 'id': 'a' is not accepted; an id not used before is"));
  const std::string chat =
      R"({"chat_id": 4, "parent_chat_id": -1, "timestamp": 0, "input_length": 1, "output_length": 3})"
      "\n";
  CHECK(contains(refusal(chat + chat), "trace:2: field 'chat_id'"));
}

TEST_CASE("formats are named, known or refused with the choices") {
  CHECK(contains(refusal(kGood, format("moncake")),
                 "unknown trace format 'moncake'; did you mean 'mooncake'?"));
  CHECK(contains(refusal("hello world\nfoo\n"), "is not a trace in a known format"));
  CHECK(contains(refusal("# nothing\n\n"), "nothing but blank lines and comments"));
  std::string junk;
  for (int i = 0; i < 5000; ++i) junk += static_cast<char>(i * 37 % 251);
  const std::string message = refusal(junk);
  CHECK(contains(message, "is not a trace in a known format"));
  CHECK(message.find('\n') == std::string::npos);
  TraceOptions options;
  options.hash_block_size = -4;
  CHECK(contains(refusal(kGood, options), "--hash-block-size: -4 is not accepted"));
}

}  // namespace
}  // namespace servesim::test
