// Decode steps priced from kernel models against a real server's, which nothing here was fitted to.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cost/roofline_cost_model.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

std::string shared_file(const std::string& path) {
  const char* folder = std::getenv("SERVESIM_SHARED");
  return std::string(folder != nullptr ? folder : SERVESIM_SHARED_DIR) + "/" + path;
}

/// Prompts of the load had 986 tokens on average, answers 128: a sequence caches about 1050.
constexpr std::int64_t kCachedTokens = 986 + 64;
/// What the kernel models promise: three runs at one load differ by 1.6 % themselves.
constexpr double kTolerance = 0.03;

}  // namespace

TEST_CASE("decode steps of qwen3-14b on an H100 by batch size", "[validation]") {
  std::ifstream file(shared_file("measured/serving/qwen3-14b-h100-steps/decode_step_vs_batch.csv"));
  if (!file) {
    WARN("skipped: no measured decode steps");
    return;
  }
  RooflineCostModel model(load_model("qwen3-14b"), load_hardware("h100-sxm"), {});
  std::string line;
  std::getline(file, line);
  int rows = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::int64_t batch = 0;
    double samples = 0;
    double measured_ms = 0;
    char comma = 0;
    fields >> batch >> comma >> samples >> comma >> measured_ms;
    Heat heat;
    const double ms = model.decode_step(batch, batch * kCachedTokens, heat).total.ms();
    INFO("batch " << batch << ": " << ms << " ms, measured " << measured_ms << " ms");
    CHECK(std::abs(ms / measured_ms - 1) < kTolerance);
    ++rows;
  }
  CHECK(rows >= 10);
}
