#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

const std::string kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";

TEST_CASE("azure 2023: CRLF, seven digits, no zone, no final newline") {
  const auto requests = requests_of(kAzureHeader +
                                    "2023-11-16 18:15:46.6805900,374,44\r\n"
                                    "2023-11-16 18:15:50.9951690,396,109");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].arrival.ns() == 0);
  CHECK(requests[0].input_tokens == 374);
  CHECK(requests[0].output_tokens == 44);
  CHECK(requests[1].arrival.ns() == 4'314'579'000);
  CHECK(requests[1].output_tokens == 109);
  CHECK(requests[1].index == 1);
}

TEST_CASE("azure 2024: six digits and a zone; 2025: NumImages") {
  const auto zoned = requests_of(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2024-05-10 00:00:00.009930+00:00,2162,5\n"
      "2024-05-10 02:00:00.010930+02:00,1,1\n");
  REQUIRE(zoned.size() == 2);
  CHECK(zoned[1].arrival.ns() == 1'000'000);
  const auto images = requests_of(
      "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
      "2025-01-31 23:59:59.5,2,100,7\n"
      "2025-02-01 00:00:00.25,0,50,9\n");
  REQUIRE(images.size() == 2);
  CHECK(images[0].input_tokens == 100);
  CHECK(images[1].arrival.ns() == 750'000'000);
}

TEST_CASE("azure dates cross leap days, months and years") {
  const auto requests = requests_of(kAzureHeader +
                                    "2024-02-28 23:59:59.0,1,1\n2024-02-29 23:59:59,1,1\n"
                                    "2024-03-01 00:00:00.000000001,1,1\n2025-01-01 00:00:00,1,1\n");
  CHECK(requests[1].arrival.ns() == 86400 * kSecondNs);
  CHECK(requests[2].arrival.ns() == 86401 * kSecondNs + 1);
  CHECK(requests[3].arrival.ns() == (86401 + 306 * std::int64_t{86400}) * kSecondNs);
}

TEST_CASE("inference-perf reads the Azure columns") {
  const std::string content = kAzureHeader + "2023-11-16 18:15:46.6805900,374,44\n";
  CHECK(detected(content) == "azure");
  CHECK(requests_of(content, format("inference-perf")).size() == 1);
}

TEST_CASE("burstgpt is read by column name, in both layouts") {
  const auto old_layout = requests_of(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45,GPT-4,1087,0,1087,API log\n");
  REQUIRE(old_layout.size() == 2);
  CHECK(old_layout[0].arrival.ns() == 5 * kSecondNs);
  CHECK(old_layout[1].input_tokens == 1087);
  CHECK(old_layout[1].output_tokens == 0);
  CHECK(old_layout[0].session.empty());
  const auto new_layout = requests_of(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log "
      "Type\n"
      "5.5,12,3.25,ChatGPT,472,18,490,Conversation log\n");
  CHECK(new_layout[0].session == "12");
  CHECK(new_layout[0].output_tokens == 18);
  CHECK(new_layout[0].arrival.ns() == 5'500'000'000);
}

TEST_CASE("vidur: long floats; length-only files arrive at 0") {
  const auto timed = requests_of(
      "arrived_at,num_prefill_tokens,num_decode_tokens\n"
      "0.0,374,44\n5.8926549999999995,91,16\n");
  CHECK(timed[1].arrival.ns() == 5'892'655'000);
  const auto lengths = requests_of(
      "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n"
      "74,918,992,0.0806100217864923\n290,905,1195,0.32\n");
  REQUIRE(lengths.size() == 2);
  CHECK(lengths[1].arrival.ns() == 0);
  CHECK(lengths[1].output_tokens == 905);
}

TEST_CASE("splitwise keeps ids and takes LLM requests only") {
  const std::string header =
      "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_"
      "size\n";
  const auto requests = requests_of(header + "0,2,0,1,1,4096,32\n1,2,0,3,1,2048,8\n");
  CHECK(requests[0].id == "0");
  CHECK(requests[1].arrival.ns() == 3 * kSecondNs);
  CHECK(requests[1].input_tokens == 2048);
  CHECK(contains(refusal(header + "0,1,0,1,1,4096,32\n"), "trace:2: field 'request_type': '1'"));
  CHECK(
      contains(refusal(header + "0,2,0,1,1,1,1\n0,2,0,1,1,1,1\n"), "trace:3: field 'request_id'"));
}

TEST_CASE("a CSV may hold a BOM, comments, blank lines, quotes and whole floats") {
  const auto requests = requests_of(
      "\xef\xbb\xbf# a comment, with commas\n\n\"arrived_at\", num_prefill_tokens "
      ",num_decode_tokens\n"
      "\n  \n# another\n1.5,\"374\",44.0\r\n\r\n2,0,0\n");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].arrival.ns() == 1'500'000'000);
  CHECK(requests[0].input_tokens == 374);
  CHECK(requests[0].output_tokens == 44);
  CHECK(requests[1].input_tokens == 0);
}

TEST_CASE("--time-unit replaces the unit of a format, where the format leaves it open") {
  TraceOptions options;
  options.time_unit = parse_time_unit("ms");
  const auto requests =
      requests_of("arrived_at,num_prefill_tokens,num_decode_tokens\n1500,1,1\n", options);
  CHECK(requests[0].arrival.ns() == 1'500'000'000);
  CHECK(contains(refusal(kAzureHeader + "2023-11-16 18:15:46.6805900,374,44\n", options),
                 "--time-unit"));
  CHECK(contains(error_of([] { parse_time_unit("sec"); }), "unknown time unit 'sec'"));
}

}  // namespace
}  // namespace servesim::test
