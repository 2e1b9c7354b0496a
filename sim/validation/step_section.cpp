// Single steps of a real server: decode by batch size, a prefill joining decodes, an isolated
// prefill.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "cost/csv_rows.hpp"
#include "cost/roofline_cost_model.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "validation/sections.hpp"
#include "validation/serving_run.hpp"
#include "validation/statistics.hpp"

namespace servesim {
namespace {

constexpr const char* kFolder = "/serving/qwen3-14b-h100-steps/";
/// Prompts of the load had 986 tokens on average, answers 128: a sequence caches about 1050.
constexpr std::int64_t kCachedTokens = 986 + 64;
constexpr double kMost = 1e9;

/// Decode-only steps were measured in a server that had prefills before them: the table's mean of
/// all such steps starts from the heat at 2 requests/s, which is close to none.
void check_decode(const std::string& path, RooflineCostModel& model, ValidationReport& report) {
  const CsvRows csv(path);
  const std::size_t batch = csv.column("batch_size"), ms = csv.column("mean_ms");
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const auto seqs = static_cast<std::int64_t>(csv.number(i, batch, 1, kMost));
    Heat heat;
    const double predicted = model.decode_step(seqs, seqs * kCachedTokens, {}, heat).total.ms();
    report.compare("steps", fmt::format("qwen3-14b decode batch {}", seqs), "step (ms)",
                   csv.number(i, ms, 1e-6, kMost), predicted, 0.02);
  }
}

/// The longest gap between tokens when one prefill joins n decodes: the length of that step, seen
/// from sequences whose last token came with the step before.
void check_mixed(const std::string& path, RooflineCostModel& model, ValidationReport& report) {
  const CsvRows csv(path);
  const std::size_t decodes = csv.column("n_decodes"), tokens = csv.column("prefill_tokens"),
                    gap = csv.column("max_itl_gap_ms");
  struct Group {
    std::vector<double> measured, predicted;
  };
  std::array<Group, 8> groups;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const auto n = static_cast<std::int64_t>(csv.number(i, decodes, 1, kMost));
    const PrefillChunk chunk{static_cast<std::int64_t>(csv.number(i, tokens, 1, kMost)), 0};
    const StepShape shape{n, n, n * kCachedTokens, {&chunk, 1}, n + 1};
    Group& group = groups[static_cast<std::size_t>(std::min<std::int64_t>(n, 8) - 1)];
    group.measured.push_back(csv.number(i, gap, 1e-6, kMost));
    group.predicted.push_back(model.price(shape, Heat{}).total.ms());
  }
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (groups[n].measured.empty()) continue;
    report.compare("steps",
                   fmt::format("qwen3-14b prefill joins {}{} decodes", n + 1, n == 7 ? "+" : ""),
                   "step p50 (ms)", percentile(groups[n].measured, 50),
                   percentile(groups[n].predicted, 50), 0.05);
  }
}

void check_isolated(const std::string& path, const HardwareSpec& gpu, RooflineCostModel& model,
                    ValidationReport& report) {
  const CsvRows csv(path);
  const std::size_t tokens = csv.column("prefill_tokens"), ttft = csv.column("ttft_ms");
  std::vector<double> measured, predicted;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const PrefillChunk chunk{static_cast<std::int64_t>(csv.number(i, tokens, 1, kMost)), 0};
    measured.push_back(csv.number(i, ttft, 1e-6, kMost));
    predicted.push_back(model.price(StepShape{0, 0, 0, {&chunk, 1}, 1}, Heat{}).total.ms() +
                        gpu.host.step_ms + gpu.host.front_end_before_ms +
                        gpu.host.front_end_after_ms);
  }
  report.compare("steps", "qwen3-14b isolated prefill", "TTFT p50 (ms)", percentile(measured, 50),
                 percentile(predicted, 50), 0.04);
}

}  // namespace

void check_steps(const std::string& data_dir, ValidationReport& report) {
  const std::string folder = data_dir + kFolder;
  if (!std::filesystem::is_directory(folder)) {
    report.skipped.push_back("steps: " + folder + " is not there");
    return;
  }
  const HardwareSpec gpu = load_hardware("h100-sxm");
  RooflineCostModel model(load_model("qwen3-14b"), gpu, {});
  check_decode(folder + "decode_step_vs_batch.csv", model, report);
  check_mixed(folder + "mixed_step_single_prefill.csv", model, report);
  check_isolated(folder + "isolated_prefill_ttft.csv", gpu, model, report);
}

}  // namespace servesim
