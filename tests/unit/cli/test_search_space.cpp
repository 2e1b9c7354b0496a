/// Are spaces read as written, and faults in them named?
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cli/gpu_cost.hpp"
#include "cli/search_space.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

std::string space_path() {
  return (std::filesystem::temp_directory_path() / "servesim_space.json").string();
}

std::vector<AxisValues> space_of(const std::string& text) {
  std::ofstream(space_path()) << text;
  const std::vector<AxisValues> axes = read_space(space_path());
  std::filesystem::remove(space_path());
  return axes;
}

void check_space_refused(const std::string& text, const std::string& word) {
  INFO(text);
  try {
    space_of(text);
    FAIL("accepted");
  } catch (const InputError& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("values, lists and ranges, in the order of the flags") {
  const auto axes = space_of(
      R"({"max-num-batched-tokens": {"from": 1000, "to": 3000, "step": 500},
          "enable-prefix-caching": [true, false], "policy": "chunked",
          "max_num_seqs": {"from": 16, "to": 130, "factor": 2},
          "gpu-memory-utilization": {"from": 0.8, "to": 0.9, "step": 0.05}})");
  REQUIRE(axes.size() == 5);
  CHECK(axes[0].axis->name == "policy");
  CHECK(axes[0].values == std::vector<std::string>{"chunked"});
  CHECK(axes[1].axis->name == "gpu-memory-utilization");
  CHECK(axes[1].values.size() == 3);
  CHECK(axes[2].values == std::vector<std::string>{"16", "32", "64", "128"});
  CHECK(axes[3].values == std::vector<std::string>{"1000", "1500", "2000", "2500", "3000"});
  CHECK(axes[4].values == std::vector<std::string>{"true", "false"});
}

TEST_CASE("a range may have ten thousand values, and ends as large as a number can be") {
  const auto range = [](const std::string& text) {
    return space_of(R"({"max-num-seqs": )" + text + "}")[0].values;
  };
  CHECK(range(R"({"from": 1, "to": 10000, "step": 1})").size() == 10'000);
  CHECK(range(R"({"from": 1, "to": 3, "step": 0.5})") == std::vector<std::string>{"1", "2", "3"});
  for (const char* by : {"1", "1e-300"}) {
    const std::string large = "18000000000000000000";
    CHECK(range(fmt::format(R"({{"from": {0}, "to": {0}, "step": {1}}})", large, by)) ==
          std::vector<std::string>{large});
  }
}

TEST_CASE("spaces that are none") {
  check_space_refused("{}", "empty");
  check_space_refused("[]", "object");
  check_space_refused(R"({"max-num-seqs": []})", "empty");
  check_space_refused(R"({"max-num-seq": [1]})", "did you mean 'max-num-seqs'");
  check_space_refused(R"({"max-num-seqs": [1, 1]})", "twice");
  check_space_refused(R"({"max-num-seqs": [[1]]})", "accepted");
  check_space_refused(R"({"max-num-seqs": {"from": 1, "to": 8}})", "step");
  check_space_refused(R"({"max-num-seqs": {"from": 1, "to": 8, "step": 1, "factor": 2}})",
                      "one of");
  check_space_refused(R"({"max-num-seqs": {"from": 8, "to": 1, "step": 1}})", "below");
  check_space_refused(R"({"max-num-seqs": {"from": 1, "to": 8, "step": 0}})", "above 0");
  check_space_refused(R"({"max-num-seqs": {"from": 1, "to": 8, "factor": 1}})", "above 1");
  check_space_refused(R"({"max-num-seqs": {"from": 1, "to": 8, "steps": 1}})", "step");
  for (const char* range :
       {R"("from": 1, "to": 1e9, "step": 1)", R"("from": 1, "to": 1e9, "step": 1e-9)",
        R"("from": 1, "to": 3, "step": 1e-9)", R"("from": 1, "to": 2, "factor": 1.0000000001)",
        R"("from": -1e308, "to": 1e308, "step": 1e-300)",
        R"("from": 1e-300, "to": 1e300, "factor": 1.001)"}) {
    check_space_refused(fmt::format(R"({{"max-num-seqs": {{{}}}}})", range), "more than 10000");
  }
  check_space_refused(R"({"request-rate": [1, 2]})", "contradicts");
  check_space_refused(R"({"time-scale": 2})", "contradicts");
  check_space_refused(R"({"trace": "a"})", "--trace");
  check_space_refused(R"({"max-num-seqs": 1, "max_num_seqs": 2})", "twice");
  check_space_refused("{", "");
}

TEST_CASE("a predecessor differs in one step of one axis, and comes before") {
  const auto axes =
      space_of(R"({"policy": ["a", "b"], "block-size": [1, 2, 3], "max-num-seqs": [1, 2, 3, 4]})");
  const std::vector<std::size_t> before = predecessors(axes);
  REQUIRE(before.size() == 24);
  CHECK(before[0] == 0);
  const std::vector<PlannedRun> runs = product(RunSpec{}, axes);
  REQUIRE(runs.size() == before.size());
  for (std::size_t i = 1; i < before.size(); ++i) {
    REQUIRE(before[i] < i);
    const RunSpec& a = runs[i].spec;
    const RunSpec& b = runs[before[i]].spec;
    CHECK((a.policy != b.policy) + (a.block_size != b.block_size) +
              (a.max_num_seqs != b.max_num_seqs) ==
          1);
  }
  CHECK(predecessors({}) == std::vector<std::size_t>{0});
}

TEST_CASE("two pools cost what their GPUs do") {
  ResolvedRun run;
  run.hardware = "h100-sxm";
  run.decode_hardware = "l40s";
  run.tensor_parallel_size = 4;
  const GpuHourCost price({"h100-sxm:3", "l40s:1"});
  CHECK(price.of(run) == 3);  // one pool
  const auto pools = std::make_shared<DisaggregatedConfig>();
  pools->replicas = 6;
  run.decode_tensor_parallel_size = 2;
  run.cluster.disaggregated = pools;
  CHECK(run.gpus() == 16);
  CHECK(price.of(run) == 1.5);  // 4 at 3, 12 at 1
  CHECK(GpuHourCost({"2.5"}).of(run) == 2.5);
  CHECK_FALSE(GpuHourCost({}).of(run));
  CHECK_THROWS_AS(GpuHourCost({"h100-sxm:3"}).of(run), InputError);
}

TEST_CASE("prices of GPUs") {
  CHECK_FALSE(GpuHourCost({}).of("h100-sxm"));
  CHECK(GpuHourCost({"2.5"}).of("h100-sxm") == 2.5);
  const GpuHourCost by_name({"h100-sxm:2.5", "a100-sxm-80g:1.2"});
  CHECK(by_name.of("a100-sxm-80g") == 1.2);
  CHECK_THROWS_AS(by_name.of("l40s"), InputError);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"-1"}, {"x"}, {"1", "2"}, {"a:1", "a:2"}, {":1"}, {"a:"}, {"a:1", "2"}}) {
    CHECK_THROWS_AS(GpuHourCost(words), InputError);
  }
}

}  // namespace servesim
