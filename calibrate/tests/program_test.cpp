// The program as a user runs it: bad input, and the whole loop on the cores.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

using testing::ProcessResult;
using testing::TemporaryFolder;

ProcessResult calibrate(const std::string& arguments, const TemporaryFolder& folder) {
  return testing::shell(std::string("timeout -s KILL 300 ") + CALIBRATE_BINARY + " " + arguments,
                        folder.path());
}

}  // namespace

TEST_CASE("calibrate refuses bad input in one line") {
  const TemporaryFolder folder;
  folder.write("gpu.json", "{}");
  for (const char* arguments :
       {"", "--backend cpu", "--out x --backend tpu", "--out x --time-budget 0", "mesure --out x",
        "fit --out p.json", "fit --timings none --out p.json", "fit --timings a --gemm b --out c",
        "derive --out x", "check", "check nothing.json --backend cpu",
        "check gpu.json --backend cpu", "--out x --bakend cpu", "check h100-sxm --backend cpu"}) {
    INFO(arguments);
    const ProcessResult result = calibrate(arguments, folder);
    CHECK(result.exit_code == 2);
    CHECK_FALSE(result.err.empty());
    CHECK(result.err.find("internal") == std::string::npos);
  }
  CHECK(calibrate("check h100-sxm --backend cpu", folder).err.find("another machine") !=
        std::string::npos);
  CHECK(calibrate("mesure --out x", folder).err.find("did you mean 'measure'") !=
        std::string::npos);
  CHECK(calibrate("--backend cpu --out /proc/none/x", folder).err.find("cannot be made") !=
        std::string::npos);
  CHECK(calibrate("check gpu.json --backend cpu", folder).err.find("gpu.json") !=
        std::string::npos);
  CHECK(calibrate("fit --timings . --out p.json", folder).err.find("environment.json") !=
        std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"gpu.json"});  // nothing was left behind
  // A GPU where there is none (or no CUDA build): said plainly.
  const ProcessResult gpu = calibrate("--out x --time-budget 5 --device 99", folder);
  CHECK(gpu.exit_code == 2);
  CHECK(gpu.error_lines() == 1);
}

TEST_CASE("calibrate says what it would measure") {
  const TemporaryFolder folder;
  const ProcessResult plan = calibrate("--backend cpu --time-budget 30 --out x --plan", folder);
  CHECK(plan.exit_code == 0);
  CHECK(plan.out.find("gemm") != std::string::npos);
  CHECK(folder.names().empty());
  CHECK(calibrate("--help", folder).exit_code == 0);
  CHECK(calibrate("measure --help", folder).out.find("--time-budget") != std::string::npos);
}

TEST_CASE("a calibration's profile drives simulate and can be checked") {
  const TemporaryFolder folder;
  const ProcessResult measured = calibrate("--backend cpu --time-budget 20 --out run", folder);
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  const auto profile =
      nlohmann::json::parse(testing::read_file(folder.path() + "/run/profile.json"));
  for (const char* block : {"hbm", "compute", "gemm", "decode_attention", "prefill_attention",
                            "elementwise", "sampling"}) {
    INFO(block);
    CHECK(profile[block]["source"].get<std::string>().find("calibrate") != std::string::npos);
    CHECK((profile[block]["kind"] == "measured" || profile[block]["kind"] == "fitted"));
  }
  CHECK(profile["gemm"]["tile_scale"] == 1.0 / 16);
  CHECK(profile["host"]["kind"] == "assumed");  // no server was there to time
  const auto predictions =
      nlohmann::json::parse(testing::read_file(folder.path() + "/run/predictions.json"));
  // Generous: cores of a test machine are shared. CI's own figure is in docs/calibration.md.
  CHECK(predictions["gemm bf16"]["held_out"].size() >= 3);
  CHECK(predictions["gemm bf16"]["held_out_median_error"] < 0.5);

  const ProcessResult run = testing::simulate(
      {"--hardware", "run/profile.json", "--model", "qwen3-1.7b", "--trace",
       SERVESIM_SOURCE_DIR "/workloads/chat.jsonl", "--num-prompts", "4", "--json", "-", "--quiet"},
      folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(nlohmann::json::parse(run.out)["schema"] == "servesim/result/v1");

  const ProcessResult check =
      calibrate("check run/profile.json --backend cpu --time-budget 6 --json check.json", folder);
  CHECK((check.exit_code == 0 || check.exit_code == 2));  // 2: a busy machine is said to be one
  CHECK(check.err.find("another machine") == std::string::npos);
  const auto report = nlohmann::json::parse(testing::read_file(folder.path() + "/check.json"));
  CHECK(report["kernels"].size() >= 3);
  CHECK((check.exit_code == 0) == report["findings"].empty());
}

TEST_CASE("a calibration that is interrupted or hung up on keeps what it measured") {
  for (const char* signal : {"INT", "HUP"}) {
    INFO(signal);
    const TemporaryFolder folder;
    const ProcessResult result =
        testing::shell(std::string("timeout -s ") + signal + " 6 " + CALIBRATE_BINARY +
                           " --backend cpu --time-budget 120 --out run",
                       folder.path());
    CHECK(result.exit_code != 0);
    CHECK(result.err.find("interrupted; what was measured is in run") != std::string::npos);
    CHECK(testing::read_file(folder.path() + "/run/timings.csv").find("latency_us") !=
          std::string::npos);
    CHECK(testing::read_file(folder.path() + "/run/left_out.csv").find("interrupted") !=
          std::string::npos);
    // What it has does not suffice for a profile, which a fit says; or it does, and there is one.
    const ProcessResult fit = calibrate("fit --timings run --out profile.json", folder);
    CHECK((fit.exit_code == 0 || fit.exit_code == 2));
    CHECK((fit.exit_code == 2) == (fit.error_lines() == 1));
  }
}

}  // namespace servesim
