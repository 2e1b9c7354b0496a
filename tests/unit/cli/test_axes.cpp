/// Does a list of values become the product of runs, in order?
#include "cli/axes.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

FlagSet parsed(const std::vector<std::string>& arguments) {
  FlagSet flags("", "");
  for (const auto scope : {Axis::Scope::kTrace, Axis::Scope::kEngine, Axis::Scope::kLoad}) {
    add_axes(flags, scope);
  }
  REQUIRE(flags.parse(arguments));
  return flags;
}

std::vector<PlannedRun> runs_of(const std::vector<std::string>& arguments) {
  return product(RunSpec{}, given_axes(parsed(arguments)));
}

}  // namespace

TEST_CASE("no lists, one run") {
  const auto runs = runs_of({"--trace", "a,b", "--block-size", "32"});
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].spec.trace == "a,b");  // a comma may be part of a file's name
  CHECK(runs[0].spec.block_size == 32);
  CHECK(runs[0].varied.empty());
}

TEST_CASE("the product, the first axis varying slowest") {
  const auto runs = runs_of({"--policy", "static", "--block-size", "1,16", "--policy",
                             "chunked,continuous", "--trace", "t"});
  REQUIRE(runs.size() == 6);
  CHECK(runs[0].spec.policy == "static");
  CHECK(runs[1].spec.policy == "static");
  CHECK(runs[2].spec.policy == "chunked");
  CHECK(runs[1].spec.block_size == 16);
  CHECK(runs[1].varied == std::vector<std::pair<std::string, std::string>>{{"block-size", "16"}});
}

TEST_CASE("switches, alone, negated and as a list") {
  CHECK(runs_of({"--enable-prefix-caching"})[0].spec.enable_prefix_caching == true);
  CHECK(runs_of({"--no-enable-prefix-caching"})[0].spec.enable_prefix_caching == false);
  CHECK(runs_of({"--enable-prefix-caching", "true,false"}).size() == 2);
  CHECK_FALSE(runs_of({})[0].spec.enable_prefix_caching.has_value());
  CHECK_THROWS_AS(runs_of({"--async-scheduling", "--no-async-scheduling"}), InputError);
  CHECK_THROWS_AS(runs_of({"--async-scheduling", "perhaps"}), InputError);
}

TEST_CASE("a step time keeps its comma") {
  const auto runs = runs_of({"--step-time", "linear:base_us=5,per_token_us=1"});
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].spec.step_time == "linear:base_us=5,per_token_us=1");
}

TEST_CASE("lists that are none") {
  CHECK_THROWS_AS(runs_of({"--block-size", "16,"}), InputError);
  CHECK_THROWS_AS(runs_of({"--block-size", "16,16"}), InputError);
  CHECK_THROWS_AS(runs_of({"--block-size", "0"}), InputError);
  CHECK_THROWS_AS(runs_of({"--watermark", "1.5"}), InputError);
  CHECK_THROWS_AS(runs_of({"--gpu-memory-utilization", "0"}), InputError);
}

TEST_CASE("a product too large is refused before it is built") {
  std::string list = "1";
  for (int i = 2; i <= 400; ++i) list += "," + std::to_string(i);
  CHECK_THROWS_AS(runs_of({"--block-size", list, "--max-num-seqs", list}), InputError);
}

}  // namespace servesim
