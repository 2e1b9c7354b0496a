// Offline throughput and first-token latency of TensorRT-LLM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "cost/csv_rows.hpp"
#include "cost/memory_budget.hpp"
#include "cost/roofline_cost_model.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "validation/sections.hpp"
#include "validation/serving_run.hpp"
#include "validation/statistics.hpp"

namespace servesim {
namespace {

constexpr double kMost = 1e9;

/// Models that are gated feed-forward transformers; the others of the tables (GPT-J, Falcon) are
/// not modelled.
std::optional<std::string> model_of(const std::string& name) {
  static const std::map<std::string, std::string> kNames{{"LLaMA 7B", "llama-2-7b"},
                                                         {"LLaMA 13B", "llama-2-13b"},
                                                         {"LLaMA 70B", "llama-2-70b"},
                                                         {"LLaMA v3.1 8B", "llama-3.1-8b"},
                                                         {"LLaMA v3.1 70B", "llama-3.1-70b"},
                                                         {"LLaMA v3.3 70B", "llama-3.1-70b"},
                                                         {"LLaMA v3.1 405B", "llama-3.1-405b"},
                                                         {"Mistral 7B", "mistral-7b"},
                                                         {"Mixtral 8x7B", "mixtral-8x7b"},
                                                         {"Mixtral 8x22B", "mixtral-8x22b"},
                                                         {"Qwen3-235B-A22B", "qwen3-235b-a22b"},
                                                         {"Llama 4 Scout", "llama-4-scout"}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> gpu_of(const std::string& name) {
  if (name.starts_with("H100")) return "h100-sxm";
  if (name.starts_with("H200")) return "h200-sxm";
  if (name.starts_with("A100")) return "a100-sxm-80g";
  return std::nullopt;
}

/// A row of the offline table, resolved.
struct OfflineRow {
  ServerSpec server;
  std::string subject;
  std::int64_t batch = 0;  ///< of a static batch
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t requests = 0;
  double tokens_per_s = 0;  ///< of all GPUs
  double kv_share = 0;      ///< of the GPU's memory
  std::int64_t capacity_tokens = 0;
};

void set_deployment(ServerSpec& server, const std::string& precision, const std::string& kv) {
  const bool fp8 = precision == "FP8" && server.hardware.fp8_flops.has_value();
  server.deployment.weights = fp8 ? WeightFormat::kFp8 : WeightFormat::k16Bit;
  server.deployment.kv =
      fp8 && kv != "FP16" ? KvFormat::kFp8 : KvFormat::k16Bit;  // fp8 checkpoints imply fp8 KV
  server.deployment.kernels = KernelFamily::kTensorRtLlm;
  server.front_end = false;
}

/// The pool that 0.93 of the memory leaves: the tables used 0.90 to 0.95 of what the weights left.
void set_scheduler(OfflineRow& row) {
  MemoryOptions options;
  options.weights = row.server.deployment.weights;
  options.kv = row.server.deployment.kv;
  options.tensor_parallel = row.server.deployment.tensor_parallel;
  options.gpu_memory_utilization = 0.95;
  options.max_num_batched_tokens = 8192;
  options.max_num_seqs = 2048;
  options.block_size = 64;
  const MemoryBudget budget = memory_budget(row.server.model, row.server.hardware, options);
  row.kv_share = budget.available_bytes / budget.memory_bytes;
  row.capacity_tokens = budget.capacity_tokens;
  SchedulerConfig& s = row.server.scheduler;
  s.block_size = options.block_size;
  s.num_gpu_blocks = budget.num_gpu_blocks;
  s.max_num_seqs = options.max_num_seqs;
  s.max_num_batched_tokens = options.max_num_batched_tokens;
  s.max_model_len = std::max<std::int64_t>(row.input + row.output, 1);
  s.enable_prefix_caching = false;
  s.async_scheduling = true;
}

/// Sequences that fit with their full length: TensorRT-LLM admits no more (GUARANTEED_NO_EVICT).
std::int64_t concurrency(const OfflineRow& row) {
  return std::clamp<std::int64_t>(row.capacity_tokens / (row.input + row.output), 1, 2048);
}

double in_flight_tokens_per_s(OfflineRow row) {
  row.server.scheduler.max_num_seqs = concurrency(row);
  std::vector<LoadRequest> load(static_cast<std::size_t>(row.requests));
  for (LoadRequest& request : load) {
    request.input_tokens = row.input;
    request.output_tokens = row.output;
  }
  SimTime end;
  replay(row.server, load, &end);
  return static_cast<double>(row.requests * row.output) / end.seconds();
}

/// The whole batch prefilled, then decoded in lock-step, each step's host time exposed as in a
/// session loop.
double static_tokens_per_s(const OfflineRow& row) {
  RooflineCostModel model(row.server.model, row.server.hardware, row.server.deployment);
  const std::vector<PrefillChunk> chunks(static_cast<std::size_t>(row.batch),
                                         PrefillChunk{row.input, 0});
  const StepCost prefill = model.price(StepShape{0, 0, 0, chunks, row.batch}, Heat{});
  Heat heat = model.next_heat(Heat{}, prefill.compute_bound_s, prefill.total);
  double seconds = prefill.total.seconds();
  for (std::int64_t step = 1; step < row.output; ++step) {
    seconds +=
        model.decode_step(row.batch, row.batch * (row.input + step - 1), {}, heat).total.seconds();
  }
  return static_cast<double>(row.batch * row.output) / seconds;
}

class OfflineTable {
 public:
  explicit OfflineTable(const std::string& path) : csv_(path) {}
  std::size_t size() const { return csv_.size(); }

  /// Nothing for rows of other engines, models, GPUs and parallelisms than are modelled.
  std::optional<OfflineRow> row(std::size_t i) const {
    if (csv_.text(i, engine_) != "TensorRT-LLM" || csv_.text(i, metric_) != "output_throughput")
      return std::nullopt;
    const std::string& mode = csv_.text(i, mode_);
    const bool is_static = mode.starts_with("static_batch");
    if ((!is_static && !mode.starts_with("inflight")) || csv_.text(i, isl_).empty())
      return std::nullopt;
    const auto model = model_of(csv_.text(i, model_));
    const auto gpu = gpu_of(csv_.text(i, gpu_));
    if (!model || !gpu || !csv_.text(i, ep_dp_).empty()) return std::nullopt;
    if (is_static && csv_.text(i, batch_).empty()) return std::nullopt;
    OfflineRow row;
    row.server.model = load_model(*model);
    row.server.hardware = load_hardware(*gpu);
    row.server.deployment.tensor_parallel =
        static_cast<std::int64_t>(csv_.optional_number(i, tp_, 1, 1024).value_or(1));
    set_deployment(row.server, csv_.text(i, precision_), csv_.text(i, kv_));
    row.batch = static_cast<std::int64_t>(csv_.optional_number(i, batch_, 1, kMost).value_or(0));
    row.input = static_cast<std::int64_t>(csv_.number(i, isl_, 1, kMost));
    row.output = static_cast<std::int64_t>(csv_.number(i, osl_, 1, kMost));
    // More requests than a few times what runs at once change nothing.
    row.requests = std::min<std::int64_t>(
        static_cast<std::int64_t>(csv_.optional_number(i, requests_, 1, kMost).value_or(1000)),
        6000);
    const bool per_gpu = csv_.text(i, unit_).starts_with("tokens/s/gpu");
    row.tokens_per_s = csv_.number(i, value_, 1e-6, 1e12) *
                       (per_gpu ? static_cast<double>(row.server.deployment.tensor_parallel) : 1);
    row.subject = fmt::format("{} {} TP{} {} {}/{}", csv_.text(i, table_), *model,
                              row.server.deployment.tensor_parallel, *gpu, row.input, row.output);
    row.server.model.check_tensor_parallel(row.server.deployment.tensor_parallel);
    set_scheduler(row);
    return row;
  }

 private:
  CsvRows csv_;
  std::size_t table_ = csv_.column("table"), engine_ = csv_.column("engine"),
              model_ = csv_.column("model"), gpu_ = csv_.column("gpu"), tp_ = csv_.column("tp"),
              ep_dp_ = csv_.column("ep_dp"), precision_ = csv_.column("precision"),
              kv_ = csv_.column("kv_dtype"), mode_ = csv_.column("mode"),
              batch_ = csv_.column("batch"), isl_ = csv_.column("isl"), osl_ = csv_.column("osl"),
              requests_ = csv_.column("num_requests"), metric_ = csv_.column("metric"),
              value_ = csv_.column("value"), unit_ = csv_.column("unit");
};

/// Errors and values of one group of rows.
struct Group {
  std::vector<double> errors, measured, predicted;
  void add(double m, double p) {
    measured.push_back(m);
    predicted.push_back(p);
    errors.push_back(std::abs(p / m - 1));
  }
};

void check_throughput(const std::string& path, ValidationReport& report) {
  /// Below this share of the memory the KV pool holds so little that the row tests the budget, not
  /// the roofline.
  constexpr double kStarved = 0.12;
  const OfflineTable table(path);
  Group all;
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::optional<OfflineRow> row = table.row(i);
    if (!row || row->kv_share < kStarved) continue;
    if (row->batch > 0 && row->batch * (row->input + row->output) > row->capacity_tokens) continue;
    const double predicted =
        row->batch > 0 ? static_tokens_per_s(*row) : in_flight_tokens_per_s(*row);
    report.compare("offline", row->subject, "tokens/s", row->tokens_per_s, predicted, std::nullopt);
    all.add(row->tokens_per_s, predicted);
    groups[row->subject.substr(0, row->subject.find(' '))].add(row->tokens_per_s, predicted);
  }
  if (all.errors.size() < 2) return;
  report.summarise("offline", fmt::format("TensorRT-LLM throughput, {} rows", all.errors.size()),
                   "median |error|", percentile(all.errors, 50), 0.15);
  report.summarise("offline", "TensorRT-LLM throughput, 1 - rank correlation", "1 - rho",
                   1 - rank_correlation(all.measured, all.predicted), 0.03);
  for (const auto& [name, group] : groups) {
    report.summarise("offline", fmt::format("{}, {} rows", name, group.errors.size()),
                     "median |error|", percentile(group.errors, 50), std::nullopt);
  }
}

void check_first_token(const std::string& path, ValidationReport& report) {
  const CsvRows csv(path);
  const std::size_t model_at = csv.column("model"), gpu_at = csv.column("gpu"),
                    tp = csv.column("tp"), precision = csv.column("precision"),
                    isl = csv.column("isl"), value = csv.column("value"),
                    version = csv.column("version");
  Group all;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const auto model = model_of(csv.text(i, model_at));
    const auto gpu = gpu_of(csv.text(i, gpu_at));
    if (!model || !gpu) continue;
    ServerSpec server;
    server.model = load_model(*model);
    server.hardware = load_hardware(*gpu);
    server.deployment.tensor_parallel = static_cast<std::int64_t>(csv.number(i, tp, 1, 1024));
    set_deployment(server, csv.text(i, precision), "");
    RooflineCostModel cost(server.model, server.hardware, server.deployment);
    const auto tokens = static_cast<std::int64_t>(csv.number(i, isl, 1, kMost));
    const PrefillChunk chunk{tokens, 0};
    const double measured = csv.number(i, value, 1e-6, kMost);
    const double predicted = cost.price(StepShape{0, 0, 0, {&chunk, 1}, 1}, Heat{}).total.ms();
    report.compare("offline",
                   fmt::format("first token v{} {} TP{} {} {}", csv.text(i, version), *model,
                               server.deployment.tensor_parallel, *gpu, tokens),
                   "first token (ms)", measured, predicted, std::nullopt);
    all.add(measured, predicted);
  }
  if (all.errors.empty()) return;
  report.summarise("offline", fmt::format("first token at batch 1, {} rows", all.errors.size()),
                   "median |error|", percentile(all.errors, 50), 0.12);
}

}  // namespace

void check_offline(const std::string& data_dir, ValidationReport& report) {
  const std::string throughput = data_dir + "/public_offline_throughput.csv";
  const std::string first = data_dir + "/public_first_token_latency_b1.csv";
  if (std::filesystem::exists(throughput)) {
    check_throughput(throughput, report);
  } else {
    report.skipped.push_back("offline: " + throughput + " is not there");
  }
  if (std::filesystem::exists(first)) {
    check_first_token(first, report);
  } else {
    report.skipped.push_back("offline: " + first + " is not there");
  }
}

}  // namespace servesim
