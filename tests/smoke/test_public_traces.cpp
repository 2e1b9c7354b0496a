/// Do public traces come through whole, under every policy, and in seconds?
#include <nlohmann/json.hpp>

#include "smoke/process.hpp"
#include "support/catch.hpp"
#include "support/shared.hpp"

namespace servesim {
namespace {

struct Whole {
  std::string name, file;
  std::vector<std::string> flags;
  std::int64_t requests, input_tokens, output_tokens;
};

const std::vector<Whole> kTraces{
    {"Azure, conversation",
     "azure-llm-2023/AzureLLMInferenceTrace_conv.csv",
     {},
     19'366,
     22'361'870,
     4'088'665},
    {"Azure, code",
     "azure-llm-2023/AzureLLMInferenceTrace_code.csv",
     {},
     8'819,
     18'059'974,
     245'896},
    {"Mooncake, conversation",
     "mooncake-fast25/conversation_trace.jsonl",
     {"--replicas", "4"},
     12'031,
     144'793'823,
     4'122'048},
};

}  // namespace

TEST_CASE("public traces complete with their known totals") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  for (const Whole& trace : kTraces) {
    std::vector<std::string> arguments{"--trace",  *shared + "/traces/" + trace.file,
                                       "--policy", "static,continuous,chunked",
                                       "--json",   "-"};
    arguments.insert(arguments.end(), trace.flags.begin(), trace.flags.end());
    const testing::ProcessResult result = testing::simulate(arguments);
    INFO(trace.name << ": " << result.err);
    REQUIRE(result.exit_code == 0);
    const nlohmann::json runs = nlohmann::json::parse(result.out)["runs"];
    REQUIRE(runs.size() == 3);
    for (const nlohmann::json& run : runs) {
      INFO(run["policy"]);
      CHECK(run["requests"] == nlohmann::json({{"total", trace.requests},
                                               {"completed", trace.requests},
                                               {"rejected", 0},
                                               {"unfinished", 0}}));
      CHECK(run["total_input_tokens"] == trace.input_tokens);
      CHECK(run["total_output_tokens"] == trace.output_tokens);
      // Well under two on an idle machine; the sanitizers' build and a busy one take longer.
      CHECK(run["sim"]["cpu_s"].get<double>() < 20);
    }
  }
}

}  // namespace servesim
