// Published means of vLLM servers under Poisson load (APEX+), without request-level data.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "core/rng.hpp"
#include "cost/csv_rows.hpp"
#include "cost/memory_budget.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "validation/sections.hpp"
#include "validation/serving_run.hpp"
#include "validation/statistics.hpp"

namespace servesim {
namespace {

constexpr double kMost = 1e9;

std::optional<std::string> model_of(const std::string& name) {
  if (name == "Llama-3.1-70B") return "llama-3.1-70b";
  if (name.starts_with("Mistral-Large")) return "mistral-large-2407";
  return std::nullopt;
}

/// Requests per second of a row: the trace's rate, shared out over the replicas of a split.
double rate_of(const std::string& workload, const std::string& split) {
  const double whole = workload.find("arrival 025") != std::string::npos ? 0.25 : 0.5;
  if (split.find("2-replica") != std::string::npos) return whole / 2;
  if (split.find("4-replica") != std::string::npos) return whole / 4;
  return whole;
}

/// Poisson arrivals of requests of the row's mean lengths: the lengths of what was really generated
/// are not published.
std::vector<LoadRequest> poisson_load(double rate, std::int64_t count, std::int64_t input,
                                      std::int64_t output) {
  Rng rng(1, "validation.online");
  std::vector<LoadRequest> load(static_cast<std::size_t>(count));
  double seconds = 0;
  for (LoadRequest& request : load) {
    seconds -= std::log(1 - rng.uniform()) / rate;
    request.arrival = SimTime::from_seconds(seconds);
    request.input_tokens = input;
    request.output_tokens = output;
  }
  return load;
}

/// The server of 2024: synchronous scheduling, `--disable-custom-all-reduce`, 0.99 of the memory.
ServerSpec server_of(const std::string& model, std::int64_t tp, bool fp8) {
  ServerSpec server;
  server.model = load_model(model);
  server.hardware = load_hardware("h100-sxm");
  server.deployment.tensor_parallel = tp;
  server.deployment.weights = fp8 ? WeightFormat::kFp8 : WeightFormat::k16Bit;
  server.deployment.custom_all_reduce = false;
  MemoryOptions options;
  options.weights = server.deployment.weights;
  options.tensor_parallel = tp;
  options.gpu_memory_utilization = 0.99;
  options.max_num_batched_tokens = 8192;
  options.max_num_seqs = 256;
  options.max_model_len = 8192;
  SchedulerConfig& s = server.scheduler;
  s.max_num_seqs = options.max_num_seqs;
  s.max_num_batched_tokens = options.max_num_batched_tokens;
  s.max_model_len = options.max_model_len;
  s.num_gpu_blocks = memory_budget(server.model, server.hardware, options).num_gpu_blocks;
  s.enable_prefix_caching = false;
  s.async_scheduling = false;
  return server;
}

}  // namespace

void check_online(const std::string& data_dir, ValidationReport& report) {
  const std::string path = data_dir + "/public_serving_online.csv";
  if (!std::filesystem::exists(path)) {
    report.skipped.push_back("online: " + path + " is not there");
    return;
  }
  const CsvRows csv(path);
  const std::size_t table = csv.column("table"), engine = csv.column("engine"),
                    model_at = csv.column("model"), tp = csv.column("tp"), dp = csv.column("dp"),
                    precision = csv.column("precision"), workload = csv.column("workload"),
                    isl = csv.column("isl_nominal"), osl = csv.column("osl_nominal"),
                    count = csv.column("n_requests"), tpot = csv.column("tpot_mean_ms"),
                    consistent = csv.column("consist");
  std::vector<double> errors;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const auto model = model_of(csv.text(i, model_at));
    if (csv.text(i, table).find("apex") == std::string::npos || !model ||
        !csv.text(i, engine).starts_with("vllm") || csv.text(i, consistent) != "OK") {
      continue;
    }
    const auto ranks = static_cast<std::int64_t>(csv.number(i, tp, 1, 1024));
    const ServerSpec server = server_of(*model, ranks, csv.text(i, precision) == "FP8");
    if (server.scheduler.num_gpu_blocks < 512) continue;
    const auto load = poisson_load(rate_of(csv.text(i, workload), csv.text(i, dp)),
                                   static_cast<std::int64_t>(csv.number(i, count, 1, kMost)),
                                   std::llround(csv.number(i, isl, 1, kMost)),
                                   std::llround(csv.number(i, osl, 1, kMost)));
    std::vector<double> predicted;
    for (const RequestLatency& latency : replay(server, load)) {
      if (latency.completed) predicted.push_back(latency.tpot_ms);
    }
    const double measured = csv.number(i, tpot, 1e-6, kMost);
    const std::string& text = csv.text(i, workload);
    report.compare("online",
                   fmt::format("{} TP{} {} {}", *model, ranks, csv.text(i, precision),
                               text.substr(0, text.find(" ("))),
                   "TPOT mean (ms)", measured, mean(predicted), std::nullopt);
    errors.push_back(std::abs(mean(predicted) / measured - 1));
  }
  if (errors.empty()) return;
  report.summarise("online", fmt::format("APEX+ vLLM, {} consistent rows", errors.size()),
                   "TPOT median |error|", percentile(errors, 50), 0.10);
}

}  // namespace servesim
