#include "study/search_writers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/request_writer.hpp"
#include "report/result_json.hpp"

namespace servesim {
namespace {

using Json = nlohmann::ordered_json;

Json varied_json(const EvaluatedConfig& config) {
  Json varied = Json::object();
  for (const auto& [name, value] : config.varied) varied[name] = value;
  return varied;
}

Json search_cost_json(const EvaluatedConfig& config) {
  Json json = cost_json(config.cost());
  json["requests_per_dollar"] = config.goodput_per_dollar();
  return json;
}

Json entry_json(const EvaluatedConfig& config, const SloTarget& target) {
  Json entry;
  entry["status"] = status_name(config.status);
  entry["max_request_rate"] =
      config.status == SearchStatus::kMet ? Json(config.rate) : Json(nullptr);
  if (!config.reason.empty()) entry["reason"] = config.reason;
  entry["varied"] = varied_json(config);
  if (config.status == SearchStatus::kInfeasible) return entry;
  entry["gpus"] = config.gpus;
  entry["runs"] = config.runs;
  entry["requests"] = {
      {"total", config.trace.requests},          {"unservable", config.trace.unservable},
      {"counted", target.counted(config.trace)}, {"good", config.misses.good},
      {"missed", config.misses.counted(target)}, {"missed_ttft", config.misses.ttft},
      {"missed_tpot", config.misses.tpot},       {"missed_e2el", config.misses.e2el},
      {"rejected", config.misses.rejected}};
  if (config.has_answer()) {
    entry["attainment"] = config.attainment(target);
    entry["goodput_per_gpu"] = config.goodput_per_gpu();
    entry["output_throughput_per_gpu"] = config.throughput_per_gpu();
    entry["tokens_per_s_per_user"] = config.tokens_per_s_per_user();
    if (config.gpu_hour_cost) entry["cost"] = search_cost_json(config);
  }
  entry["config"] = config.config;
  entry["metrics"] = config.metrics;
  return entry;
}

std::string scalar_text(const Json& value) {
  if (value.is_null() || value.is_structured()) return {};
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A setting of a configuration; of its two pools both, where they differ.
std::string setting_text(const Json& config, const char* name) {
  if (config.contains(name)) return scalar_text(config.at(name));
  if (!config.contains("prefill")) return {};
  const auto of = [&](const char* pool) {
    return scalar_text(config.at(pool).value(name, Json(nullptr)));
  };
  const std::string prefill = of("prefill");
  const std::string decode = of("decode");
  return prefill == decode ? prefill : fmt::format("{} + {}", prefill, decode);
}

constexpr std::array kConfigColumns{"model",
                                    "hardware",
                                    "policy",
                                    "kv",
                                    "tensor_parallel_size",
                                    "pipeline_parallel_size",
                                    "replicas",
                                    "block_size",
                                    "num_gpu_blocks",
                                    "max_model_len",
                                    "max_num_seqs",
                                    "max_num_batched_tokens"};
constexpr std::array kEntryColumns{"goodput_per_gpu", "gpus", "attainment",
                                   "output_throughput_per_gpu", "tokens_per_s_per_user"};
constexpr std::array kMetricColumns{
    "request_throughput", "request_goodput", "output_throughput", "mean_ttft_ms", "p99_ttft_ms",
    "mean_tpot_ms",       "p99_tpot_ms",     "p99_itl_ms",        "mean_e2el_ms", "p99_e2el_ms"};

}  // namespace

std::string search_json(const SearchResult& result, const std::string& command) {
  const SearchSettings& settings = result.settings;
  Json document;
  document["schema"] = "servesim/search/v1";
  document["version"] = version();
  if (!command.empty()) document["command"] = command;
  document["seed"] = settings.seed;
  document["trace"] = settings.trace;
  document["goodput"] = goodput_json(settings.targets);
  document["attainment"] = settings.target.attainment;
  document["tolerance"] = settings.tolerance;
  document["objective"] = objective_name(settings.objective);
  Json all = Json::array();
  for (const EvaluatedConfig& config : result.evaluated) {
    all.push_back(entry_json(config, settings.target));
  }
  document["best"] = result.best ? all[*result.best] : Json(nullptr);
  document["pareto"] = result.pareto;
  document["evaluated"] = std::move(all);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string search_csv(const SearchResult& result) {
  std::string text = "status,max_request_rate";
  for (const char* name : kEntryColumns) text += fmt::format(",{}", name);
  text += ",usd_per_million_output_tokens,pareto";
  for (const char* name : kConfigColumns) text += fmt::format(",{}", name);
  for (const char* name : kMetricColumns) text += fmt::format(",{}", name);
  text += ",settings,reason\n";
  for (std::size_t at = 0; at < result.evaluated.size(); ++at) {
    const EvaluatedConfig& config = result.evaluated[at];
    const Json entry = entry_json(config, result.settings.target);
    const bool front =
        std::find(result.pareto.begin(), result.pareto.end(), at) != result.pareto.end();
    const auto field = [&text](const std::string& value) {
      text += ',';
      append_csv_field(text, value);
    };
    const auto column = [&](const Json& object, const char* name) {
      const auto found = object.find(name);
      field(found == object.end() ? "" : scalar_text(*found));
    };
    text += status_name(config.status);
    column(entry, "max_request_rate");
    for (const char* name : kEntryColumns) column(entry, name);
    column(entry.value("cost", Json::object()), "usd_per_million_output_tokens");
    text += front ? ",1" : ",0";
    const Json resolved = entry.value("config", Json::object());
    const Json metrics = config.metrics.is_object() ? config.metrics : Json::object();
    for (const char* name : kConfigColumns) field(setting_text(resolved, name));
    for (const char* name : kMetricColumns) column(metrics, name);
    std::string settings;
    for (const auto& [name, value] : config.varied) {
      settings += fmt::format("{}--{} {}", settings.empty() ? "" : " ", name, value);
    }
    field(settings);
    field(config.reason);
    text += '\n';
  }
  return text;
}

}  // namespace servesim
