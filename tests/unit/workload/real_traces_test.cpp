/// Public traces, where they are at hand.
#include <filesystem>

#include "support/catch.hpp"
#include "support/shared.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

struct Expected {
  std::string file;
  std::string format;
  std::uint64_t requests;
  std::int64_t input_tokens;  ///< -1: not checked
  std::int64_t output_tokens;
};

TEST_CASE("public traces have their known totals") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  const std::vector<Expected> traces{
      {"azure-llm-2023/AzureLLMInferenceTrace_conv.csv", "azure", 19'366, 22'361'870, 4'088'665},
      {"azure-llm-2023/AzureLLMInferenceTrace_code.csv", "azure", 8'819, 18'059'974, 245'896},
      {"mooncake-fast25/conversation_trace.jsonl", "mooncake", 12'031, 144'793'823, 4'122'048},
      {"vidur-processed/splitwise_conv.csv", "vidur", 19'366, 22'361'870, 4'088'665},
      {"inference-perf-sample/trace.csv", "azure", 20, -1, -1},
      {"splitwise-sim/test_trace.csv", "splitwise", 3, 8'192, 56},
      {"agentic-sessions/trace_0012.json", "sessions", 0, 649'460, 4'130},
      {"agentic-sessions/trace_0026.json", "sessions", 0, 52'760, 5'294},
  };
  for (const Expected& expected : traces) {
    const std::string path = *shared + "/traces/" + expected.file;
    INFO(path);
    const TraceSource source(path);
    CHECK(source.format() == expected.format);
    CHECK_FALSE(source.was_unsorted());
    if (expected.requests > 0) CHECK(source.summary().requests == expected.requests);
    if (expected.input_tokens < 0) continue;
    CHECK(source.summary().input_tokens == expected.input_tokens);
    CHECK(source.summary().output_tokens == expected.output_tokens);
  }
}

TEST_CASE("length-only traces arrive at 0") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  for (const std::string file :
       {"sharegpt-lengths/sharegpt_8k_filtered_stats_llama2_tokenizer.csv",
        "vidur-processed/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv"}) {
    const std::string path = *shared + "/traces/" + file;
    const TraceSource source(path);
    CHECK(source.format() == "vidur");
    CHECK(source.summary().requests > 20'000);
    CHECK(source.summary().last_arrival.ns() == 0);
  }
}

TEST_CASE("the arrivals of Azure's trace are those that Vidur derived from it") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  const std::string azure = *shared + "/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv";
  const std::string vidur = *shared + "/traces/vidur-processed/splitwise_conv.csv";
  const auto a = read_all(*TraceSource(azure).open());
  const auto b = read_all(*TraceSource(vidur).open());
  REQUIRE(a.size() == b.size());
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i].arrival.ns() - b[i].arrival.ns()));
  }
  CHECK(largest < 1000);
}

TEST_CASE("scheduler cases are read") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  const std::string folder = *shared + "/schedules";
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().string().ends_with(".trace.jsonl")) continue;
    const TraceSource source(entry.path().string());
    INFO(entry.path());
    CHECK(source.format() == "schedule-case");
    ++cases;
  }
  CHECK(cases >= 30);
}

}  // namespace
}  // namespace servesim::test
