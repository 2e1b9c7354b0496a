/// Does the program, as a user calls it, write the schedules that vLLM's own scheduler made?
#include <filesystem>

#include "smoke/process.hpp"
#include "support/catch.hpp"
#include "support/oracle/cases.hpp"
#include "support/oracle/compare.hpp"
#include "support/shared.hpp"

namespace servesim {

TEST_CASE("--engine-config and --schedule-log reproduce every recorded schedule") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  const std::filesystem::path folder = std::filesystem::path(*shared) / "schedules";
  const std::vector<std::string> names = oracle::list_cases(folder);
  REQUIRE(names.size() >= 30);
  const testing::TemporaryFolder outputs;
  for (const std::string& name : names) {
    const std::string base = (folder / name).string();
    const std::string log = outputs.path() + "/" + name + ".jsonl";
    const testing::ProcessResult result =
        testing::simulate({"--engine-config", base + ".config.json", "--trace",
                           base + ".trace.jsonl", "--schedule-log", log, "--quiet"});
    INFO(name << ": " << result.err);
    REQUIRE(result.exit_code == 0);
    const auto difference = oracle::compare_logs(oracle::read_schedule(base + ".schedule.jsonl"),
                                                 oracle::read_schedule(log));
    INFO(difference.value_or("equal"));
    CHECK_FALSE(difference.has_value());
  }
}

}  // namespace servesim
