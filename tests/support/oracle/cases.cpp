#include "support/oracle/cases.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace servesim::oracle {

namespace {

using nlohmann::json;

constexpr const char* kConfigSuffix = ".config.json";

std::ifstream open(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) {
    throw std::runtime_error("cannot open " + file.string());
  }
  return in;
}

template <typename Value, typename Parse>
std::vector<Value> read_lines(const std::filesystem::path& file, const Parse& parse) {
  std::ifstream in = open(file);
  std::vector<Value> values;
  std::string line;
  while (std::getline(in, line)) {
    if (!line.empty()) {
      values.push_back(parse(json::parse(line)));
    }
  }
  return values;
}

// Whole microseconds stay exact; fractions of one are kept to the nanosecond.
std::int64_t ns_from_us(const json& object, const char* key) {
  const json value = object.value(key, json(0));
  if (value.is_number_integer()) {
    return value.get<std::int64_t>() * 1000;
  }
  return std::llround(value.get<double>() * 1000.0);
}

template <typename Value>
Value value_or_empty(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? Value{} : found->template get<Value>();
}

Request parse_request(const json& line, std::int64_t default_hash_block) {
  Request request;
  request.id = line.at("id").get<std::string>();
  request.arrival_ns = ns_from_us(line, "arrival_us");
  request.priority = line.value("priority", 0);
  request.prompt_len = line.at("prompt_len").get<std::int64_t>();
  request.output_len = line.at("output_len").get<std::int64_t>();
  request.hash_ids = value_or_empty<std::vector<std::uint64_t>>(line, "hash_ids");
  request.hash_block = line.value("hash_block", default_hash_block);
  return request;
}

LoggedStep parse_step(const json& line) {
  using Names = std::vector<std::string>;
  using Counts = std::map<std::string, std::int64_t>;
  LoggedStep step;
  step.step = value_or_empty<std::int64_t>(line, "step");
  step.t_ns = ns_from_us(line, "t_us");
  step.scheduled =
      value_or_empty<std::vector<std::pair<std::string, std::int64_t>>>(line, "scheduled");
  step.admitted = value_or_empty<Names>(line, "admitted");
  step.resumed = value_or_empty<Names>(line, "resumed");
  step.preempted = value_or_empty<Names>(line, "preempted");
  step.prefix_hit_tokens = value_or_empty<Counts>(line, "prefix_hit_tokens");
  step.drafts = value_or_empty<Counts>(line, "drafts");
  step.free_blocks = value_or_empty<std::int64_t>(line, "free_blocks");
  step.running = value_or_empty<Names>(line, "running");
  step.waiting = value_or_empty<Names>(line, "waiting");
  step.tokens_out = value_or_empty<Counts>(line, "tokens_out");
  step.accepted = value_or_empty<Counts>(line, "accepted");
  step.finished = value_or_empty<Names>(line, "finished");
  step.done_ns = ns_from_us(line, "done_us");
  step.free_blocks_after = value_or_empty<std::int64_t>(line, "free_blocks_after");
  return step;
}

void parse_spec(const json& object, Config& config) {
  const auto spec = object.find("spec");
  if (spec == object.end() || spec->is_null()) {
    return;
  }
  const auto method = spec->at("method").get<std::string>();
  if (method != "ngram" && method != "eagle") {
    throw std::invalid_argument("unknown speculative method " + method);
  }
  config.spec_method = method == "eagle" ? SpecMethod::kEagle : SpecMethod::kNgram;
  config.num_speculative_tokens = spec->at("k").get<std::int64_t>();
}

QueuePolicy parse_policy(const std::string& name) {
  if (name != "fcfs" && name != "priority") {
    throw std::invalid_argument("unknown policy " + name);
  }
  return name == "priority" ? QueuePolicy::kPriority : QueuePolicy::kFcfs;
}

}  // namespace

Config read_config(const std::filesystem::path& file) {
  std::ifstream in = open(file);
  const json object = json::parse(in);
  Config config;
  const auto set = [&object](const char* key, auto& field) { field = object.value(key, field); };
  config.num_gpu_blocks = object.at("num_gpu_blocks").get<std::int64_t>();
  config.policy = parse_policy(object.value("policy", std::string("fcfs")));
  set("block_size", config.block_size);
  set("max_num_seqs", config.max_num_seqs);
  set("max_num_batched_tokens", config.max_num_batched_tokens);
  set("max_model_len", config.max_model_len);
  set("enable_prefix_caching", config.enable_prefix_caching);
  set("enable_chunked_prefill", config.enable_chunked_prefill);
  set("long_prefill_token_threshold", config.long_prefill_token_threshold);
  set("watermark", config.watermark);
  set("scheduler_reserve_full_isl", config.scheduler_reserve_full_isl);
  set("async_scheduling", config.async_scheduling);
  parse_spec(object, config);
  if (object.contains("step_us")) {
    config.base_us = object["step_us"].value("base", config.base_us);
    config.per_token_us = object["step_us"].value("per_token", config.per_token_us);
  }
  return config;
}

std::vector<Request> read_trace(const std::filesystem::path& file,
                                std::int64_t default_hash_block) {
  return read_lines<Request>(
      file, [&](const json& line) { return parse_request(line, default_hash_block); });
}

std::vector<LoggedStep> read_schedule(const std::filesystem::path& file) {
  return read_lines<LoggedStep>(file, parse_step);
}

Case read_case(const std::filesystem::path& folder, const std::string& name) {
  Case result;
  result.name = name;
  result.config = read_config(folder / (name + kConfigSuffix));
  result.requests = read_trace(folder / (name + ".trace.jsonl"), result.config.block_size);
  result.steps = read_schedule(folder / (name + ".schedule.jsonl"));
  return result;
}

std::vector<std::string> list_cases(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(folder)) {
    return names;
  }
  const std::string suffix = kConfigSuffix;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.size() > suffix.size() && file.ends_with(suffix)) {
      names.push_back(file.substr(0, file.size() - suffix.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace servesim::oracle
