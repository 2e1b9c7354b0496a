// Real vLLM runs, replayed request by request.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/params.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "validation/sections.hpp"
#include "validation/serving_run.hpp"
#include "validation/statistics.hpp"
#include "workload/csv_table.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

/// A measured run: the load, what each request saw, and which of them count.
struct MeasuredRun {
  std::string name;
  ServerSpec server;
  std::vector<LoadRequest> load;
  std::vector<RequestLatency> measured;
  std::vector<std::string> stages;  ///< by request; "" where the run has one
};

std::string model_name(const std::string& repository) {
  static const std::map<std::string, std::string> kNames{
      {"Qwen/Qwen3-14B", "qwen3-14b"},
      {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
      {"meta-llama/Llama-2-70b-hf", "llama-2-70b"},
      {"codellama/CodeLlama-34b-Instruct-hf", "codellama-34b"},
      {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"}};
  const auto found = kNames.find(repository);
  if (found != kNames.end()) return found->second;
  std::string name = fs::path(repository).filename().string();
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

std::int64_t whole(const nlohmann::json& config, const char* key, const char* other) {
  return config.contains(key) ? config.at(key).get<std::int64_t>()
                              : config.at(other).get<std::int64_t>();
}

ServerSpec server_of(const nlohmann::json& config) {
  ServerSpec server;
  server.model = load_model(model_name(config.at("model").get<std::string>()));
  const auto gpu = config.at("gpu").get<std::string>();
  server.hardware = load_hardware(gpu.find("A100") != std::string::npos   ? "a100-sxm-80g"
                                  : gpu.find("H200") != std::string::npos ? "h200-sxm"
                                                                          : "h100-sxm");
  server.deployment.tensor_parallel = whole(config, "tp", "tensor_parallelism");
  SchedulerConfig& s = server.scheduler;
  s.block_size = config.at("block_size").get<std::int64_t>();
  s.num_gpu_blocks = whole(config, "num_gpu_blocks", "kv_blocks_total_gpu");
  s.max_num_seqs = config.at("max_num_seqs").get<std::int64_t>();
  s.max_num_batched_tokens = config.at("max_num_batched_tokens").get<std::int64_t>();
  s.max_model_len = config.at("max_model_len").get<std::int64_t>();
  s.enable_prefix_caching = config.at("prefix_caching").get<bool>();
  s.async_scheduling = true;
  s.truncate_at_max_model_len = true;
  return server;
}

/// Groups of prompts that begin with the same system prompt, as the load generator made them.
void set_groups(const nlohmann::json& config, MeasuredRun& run) {
  if (!config.contains("workload")) return;
  const nlohmann::json& workload = config.at("workload");
  const auto per_group = workload.value("num_prompts_per_group", std::int64_t{0});
  if (per_group <= 0) return;
  for (LoadRequest& request : run.load) {
    request.group = request.prompt / per_group;
    request.group_tokens = workload.value("system_prompt_len", std::int64_t{0});
  }
}

void read_requests(const std::string& path, MeasuredRun& run) {
  CsvTable csv(InputFile::open(path));
  const bool shared = csv.optional_column("prompt_id").has_value();
  const std::size_t sent = csv.column(shared ? "arrival_us" : "send_us");
  const std::size_t input = csv.column("input_tokens");
  const std::size_t output = csv.column(shared ? "output_tokens_server" : "output_tokens");
  const std::size_t ttft = csv.column("ttft_us");
  const std::size_t e2e = csv.column("e2e_us");
  const std::size_t prompt = shared ? csv.column("prompt_id") : 0;
  const std::size_t stage = shared ? csv.column("stage") : 0;
  constexpr std::int64_t kUs = 1000;
  while (csv.next()) {
    LoadRequest r;
    r.arrival = csv.time(sent, kUs);
    r.input_tokens = csv.tokens(input);
    r.output_tokens = csv.tokens(output);
    if (shared) r.prompt = csv.tokens(prompt);
    RequestLatency seen;
    seen.ttft_ms = csv.time(ttft, kUs).ms();
    seen.e2e_ms = csv.time(e2e, kUs).ms();
    seen.completed = seen.e2e_ms > 0;
    if (r.output_tokens > 1) {
      seen.tpot_ms = (seen.e2e_ms - seen.ttft_ms) / static_cast<double>(r.output_tokens - 1);
    }
    run.load.push_back(r);
    run.measured.push_back(seen);
    run.stages.emplace_back(shared ? std::string(csv[stage]) : "");
  }
}

/// Arrivals in order, as the engine wants them; ties keep the file's order.
void sort_by_arrival(MeasuredRun& run) {
  std::vector<std::size_t> order(run.load.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return run.load[a].arrival < run.load[b].arrival;
  });
  MeasuredRun sorted = run;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.load[i] = run.load[order[i]];
    sorted.measured[i] = run.measured[order[i]];
    sorted.stages[i] = run.stages[order[i]];
  }
  run = std::move(sorted);
}

struct Columns {
  std::vector<double> ttft, tpot, e2e;
  void add(const RequestLatency& latency) {
    ttft.push_back(latency.ttft_ms);
    e2e.push_back(latency.e2e_ms);
    if (latency.tpot_ms > 0) tpot.push_back(latency.tpot_ms);
  }
};

/// The bars for a run's metrics; none for runs of other kinds.
struct Bars {
  std::optional<double> tpot, e2e, ttft_mean, ttft_p50, ttft_p99;
};

Bars bars_for(const std::string& name) {
  if (name.starts_with("qwen3")) return {0.02, 0.02, 0.04, std::nullopt, 0.08};
  if (name.starts_with("mixtral")) return {0.08, 0.08, std::nullopt, 0.10, std::nullopt};
  return {0.05, 0.05, std::nullopt, 0.05, std::nullopt};
}

void compare(const std::string& subject, const Bars& bars, const Columns& measured,
             const Columns& predicted, ValidationReport& report) {
  const auto add = [&](const char* metric, double m, double p, std::optional<double> bar) {
    report.compare("serving", subject, metric, m, p, bar);
  };
  add("TPOT mean (ms)", mean(measured.tpot), mean(predicted.tpot), bars.tpot);
  add("E2E mean (ms)", mean(measured.e2e), mean(predicted.e2e), bars.e2e);
  add("TTFT mean (ms)", mean(measured.ttft), mean(predicted.ttft), bars.ttft_mean);
  add("TTFT p50 (ms)", percentile(measured.ttft, 50), percentile(predicted.ttft, 50),
      bars.ttft_p50);
  add("TTFT p99 (ms)", percentile(measured.ttft, 99), percentile(predicted.ttft, 99),
      bars.ttft_p99);
}

void check_run(const fs::path& folder, ValidationReport& report) {
  MeasuredRun run;
  run.name = folder.filename().string();
  const nlohmann::json config = read_json_file((folder / "summary.json").string()).at("config");
  run.server = server_of(config);
  read_requests((folder / "requests.csv.gz").string(), run);
  set_groups(config, run);
  // Where 100 prompts are cycled, the first of each is cold and stalls the server's start.
  constexpr std::size_t kColdRequests = 100;
  std::vector<bool> counts(run.load.size(), true);
  sort_by_arrival(run);
  if (run.load.front().prompt >= 0) {
    for (std::size_t i = 0; i < std::min(kColdRequests, counts.size()); ++i) counts[i] = false;
  }
  const std::vector<RequestLatency> predicted = replay(run.server, run.load);
  std::map<std::string, std::pair<Columns, Columns>> stages;
  for (std::size_t i = 0; i < run.load.size(); ++i) {
    if (!counts[i] || !predicted[i].completed || !run.measured[i].completed) continue;
    auto& [m, p] = stages[run.stages[i]];
    m.add(run.measured[i]);
    p.add(predicted[i]);
  }
  for (const auto& [stage, columns] : stages) {
    const std::string subject = stage.empty() || stages.size() == 1
                                    ? run.name
                                    : fmt::format("{} stage {}", run.name, stage);
    compare(subject, bars_for(run.name), columns.first, columns.second, report);
  }
}

}  // namespace

void check_serving(const std::string& data_dir, const ValidationOptions& options,
                   ValidationReport& report) {
  const fs::path root = fs::path(data_dir) / "serving";
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool wanted = options.runs.empty() || std::find(options.runs.begin(), options.runs.end(),
                                                          name) != options.runs.end();
    if (wanted && fs::exists(entry.path() / "requests.csv.gz")) folders.push_back(entry.path());
  }
  if (folders.empty()) report.skipped.push_back("serving: no run in " + root.string());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    options.progress("serving " + folder.filename().string());
    check_run(folder, report);
  }
}

}  // namespace servesim
