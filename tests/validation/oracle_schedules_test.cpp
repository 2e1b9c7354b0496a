// The oracle engine reproduces the recorded schedules of the real scheduler, line by line.
#include <filesystem>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/oracle/cases.hpp"
#include "support/oracle/compare.hpp"
#include "support/oracle/oracle.hpp"
#include "support/oracle/random_case.hpp"
#include "support/shared.hpp"

namespace servesim::oracle {
namespace {

Request make_request(const char* id, std::int64_t arrival_us, std::int64_t prompt_len,
                     std::int64_t output_len) {
  Request request;
  request.id = id;
  request.arrival_ns = arrival_us * 1000;
  request.prompt_len = prompt_len;
  request.output_len = output_len;
  return request;
}

TEST_CASE("the oracle reproduces every recorded schedule", "[oracle][validation]") {
  const auto shared = testing::shared_dir();
  if (!shared) return;
  const std::filesystem::path folder = std::filesystem::path(*shared) / "schedules";
  const std::vector<std::string> names = list_cases(folder);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    const Case recorded = read_case(folder, name);
    const Result result = run(recorded.config, recorded.requests, linear_price(recorded.config));
    const auto difference = compare_logs(recorded.steps, result.steps);
    INFO(name << ": " << difference.value_or("equal"));
    CHECK_FALSE(difference.has_value());
  }
}

TEST_CASE("a changed log line is reported with its fields", "[oracle]") {
  const RandomCase random = random_case(1);
  const Result result = run(random.config, random.requests, linear_price(random.config));
  std::vector<LoggedStep> changed = result.steps;
  CHECK_FALSE(compare_logs(result.steps, changed).has_value());

  changed.back().free_blocks += 1;
  const auto difference = compare_logs(result.steps, changed);
  REQUIRE(difference.has_value());
  CHECK(difference->find("differs in free_blocks\n") != std::string::npos);

  changed.pop_back();
  CHECK(compare_logs(result.steps, changed)->find("missing") != std::string::npos);
}

TEST_CASE("random cases end with every invariant intact", "[oracle][property]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const RandomCase random = random_case(seed);
    CHECK_NOTHROW(run(random.config, random.requests, linear_price(random.config)));
    const RandomCase fixed = random_static_case(seed);
    CHECK_NOTHROW(run(fixed.config, fixed.requests, linear_price(fixed.config)));
  }
}

TEST_CASE("static batching waits for the last sequence of a batch", "[oracle]") {
  Config config;
  config.batching = Batching::kStatic;
  config.num_gpu_blocks = 101;
  config.max_num_seqs = 2;
  config.max_num_batched_tokens = 8;
  const std::vector<Request> requests = {make_request("a", 0, 10, 2), make_request("b", 0, 4, 4),
                                         make_request("c", 1, 4, 1)};
  const Result result = run(config, requests, linear_price(100, 0));

  // Two prefill steps of 8 and 6 tokens, three decode steps of both, then the next batch.
  REQUIRE(result.steps.size() == 6);
  CHECK(result.steps[0].scheduled == std::vector<std::pair<std::string, std::int64_t>>{{"a", 8}});
  CHECK(result.steps[1].scheduled ==
        std::vector<std::pair<std::string, std::int64_t>>{{"a", 2}, {"b", 4}});
  CHECK(result.steps[4].scheduled ==
        std::vector<std::pair<std::string, std::int64_t>>{{"a", 1}, {"b", 1}});
  CHECK(result.steps[4].tokens_out == std::map<std::string, std::int64_t>{{"b", 1}});
  CHECK(result.steps[4].free_blocks == 98);
  CHECK(result.steps[4].free_blocks_after == 100);
  CHECK(result.outcomes[0].finish_ns == 300'000);
  CHECK(result.outcomes[1].finish_ns == 500'000);
  CHECK(result.outcomes[2].admit_ns == 500'000);
  CHECK(result.outcomes[2].finish_ns == 600'000);
}

TEST_CASE("a request that can never fit is rejected and leaves no trace", "[oracle]") {
  Config config;
  config.num_gpu_blocks = 5;
  config.block_size = 4;
  config.max_model_len = 32;
  CHECK_FALSE(never_fits(config, make_request("fits", 0, 10, 7)).has_value());
  CHECK(never_fits(config, make_request("blocks", 0, 10, 8)).has_value());
  CHECK(never_fits(config, make_request("length", 0, 32, 1)).has_value());
  CHECK(never_fits(config, make_request("prompt", 0, 0, 1)).has_value());
  CHECK(never_fits(config, make_request("output", 0, 1, 0)).has_value());

  const Result result = run(config, {make_request("blocks", 0, 10, 8)}, linear_price(100, 0));
  CHECK(result.steps.empty());
  CHECK(result.outcomes[0].status == Status::kRejected);
}

}  // namespace
}  // namespace servesim::oracle
