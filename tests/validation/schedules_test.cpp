/// The production engine makes the decisions that vLLM's own scheduler made, line by line.
#include <filesystem>

#include "support/catch.hpp"
#include "support/oracle/cases.hpp"
#include "support/oracle/compare.hpp"
#include "support/replay.hpp"
#include "support/shared.hpp"

using namespace servesim;

TEST_CASE("every recorded schedule of vLLM's scheduler is reproduced", "[validation]") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  const std::filesystem::path folder = std::filesystem::path(*shared) / "schedules";
  const std::vector<std::string> names = oracle::list_cases(folder);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    const oracle::Case recorded = oracle::read_case(folder, name);
    const testing::AffinePrice price{1000 * recorded.config.base_us,
                                     1000 * recorded.config.per_token_us, 0};
    testing::Outcome stepwise;
    const auto steps = testing::log_engine(recorded.config, recorded.requests, price, &stepwise);
    const auto difference = oracle::compare_logs(recorded.steps, steps);
    INFO(name << ": " << difference.value_or("equal"));
    CHECK_FALSE(difference.has_value());
    CHECK(testing::difference(
              stepwise, testing::run_engine(recorded.config, recorded.requests, price)) == "");
  }
}
