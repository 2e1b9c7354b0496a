#include "workload/generate_spec.hpp"

#include <algorithm>
#include <filesystem>

#include "core/data_dir.hpp"
#include "core/params.hpp"

namespace servesim {
namespace {

/// A block of the spec: its JSON, and where it stands.
struct Block {
  const nlohmann::json& json;
  std::string origin;
  std::string pointer;

  Distribution distribution(Params& params, const std::string& key) const {
    params.allow(key);
    if (!json.contains(key)) throw params.error(key, "is missing");
    return parse_distribution(json.at(key), origin, pointer + "/" + key);
  }
  Block child(Params& params, const std::string& key) const {
    params.allow(key);
    if (!json.contains(key)) throw params.error(key, "is missing");
    return {json.at(key), origin, pointer + "/" + key};
  }
};

/// Every block says where its numbers come from.
Params open_block(const Block& block) {
  Params params(block.json, block.origin, block.pointer);
  params.required<std::string>("source");
  params.required<std::string>("kind");
  return params;
}

constexpr double kMostPerSecond = 1e9;

ArrivalSpec parse_arrivals(const Block& block) {
  Params params = open_block(block);
  ArrivalSpec arrivals;
  const auto process = params.required<std::string>("process");
  if (process == "poisson") {
    arrivals.process = ArrivalSpec::Process::kPoisson;
  } else if (process == "gamma") {
    arrivals.process = ArrivalSpec::Process::kGamma;
    arrivals.burstiness = params.number("burstiness", 1e-3, 1e6);
  } else if (process == "constant") {
    arrivals.process = ArrivalSpec::Process::kConstant;
  } else if (process == "all-at-once") {
    arrivals.process = ArrivalSpec::Process::kAllAtOnce;
  } else {
    throw params.error(
        "process",
        unknown_name("process", process, {"poisson", "gamma", "constant", "all-at-once"}).what());
  }
  if (arrivals.process != ArrivalSpec::Process::kAllAtOnce) {
    arrivals.rate_per_s = params.number("rate_per_s", 1e-9, kMostPerSecond);
  }
  params.finish();
  return arrivals;
}

PrefixSpec parse_prefix(const Block& block) {
  Params params = open_block(block);
  PrefixSpec prefix;
  prefix.block_tokens = params.integer("block_tokens", 1, std::int64_t{1} << 20);
  prefix.groups = params.optional<std::int64_t>("groups", 1);
  if (prefix.groups < 1) throw params.error("groups", "must be 1 or more");
  prefix.system_tokens = params.integer("system_tokens", 0, std::int64_t{1} << 30);
  prefix.reuse_probability = params.optional<double>("reuse_probability", 0.0);
  if (!(prefix.reuse_probability >= 0 && prefix.reuse_probability <= 1)) {
    throw params.error("reuse_probability", "must be from 0 to 1");
  }
  if (prefix.reuse_probability > 0) {
    prefix.reused_fraction = block.distribution(params, "reused_fraction");
    prefix.reuse_distance = block.distribution(params, "reuse_distance");
  }
  params.finish();
  return prefix;
}

SessionSpec parse_session(const Block& block) {
  Params params = open_block(block);
  SessionSpec session;
  session.turns = block.distribution(params, "turns");
  session.growth_tokens = block.distribution(params, "growth_tokens");
  session.think_s = block.distribution(params, "think_s");
  session.compaction_probability = params.optional<double>("compaction_probability", 0.0);
  if (!(session.compaction_probability >= 0 && session.compaction_probability <= 1)) {
    throw params.error("compaction_probability", "must be from 0 to 1");
  }
  params.finish();
  return session;
}

double parse_correlation(const Block& block) {
  Params params = open_block(block);
  const double value = params.number("value", -1, 1);
  params.finish();
  return value;
}

std::int64_t parse_limit(const Block& block) {
  Params params = open_block(block);
  const std::int64_t value = params.integer("value", 2, std::int64_t{1} << 31);
  params.finish();
  return value;
}

std::string specs_folder() {
  return data_dir() + "/workloads/specs";
}

}  // namespace

std::vector<std::string> spec_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(specs_folder(), error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

GenerateSpec load_spec(const std::string& name_or_path) {
  std::string path = name_or_path;
  if (!path.ends_with(".json") && path.find('/') == std::string::npos) {
    const std::vector<std::string> names = spec_names();
    if (std::find(names.begin(), names.end(), path) == names.end()) {
      throw unknown_name("workload spec", name_or_path, names);
    }
    path = specs_folder() + "/" + path + ".json";
  }
  const nlohmann::json document = read_json_file(path);
  Params params(document, path);
  const Block root{document, path, ""};
  GenerateSpec spec;
  spec.name = name_or_path;
  spec.description = params.required<std::string>("description");
  spec.arrivals = parse_arrivals(root.child(params, "arrivals"));
  spec.input_tokens = root.distribution(params, "input_tokens");
  spec.output_tokens = root.distribution(params, "output_tokens");
  if (params.has("rank_correlation")) {
    spec.rank_correlation = parse_correlation(root.child(params, "rank_correlation"));
  }
  if (params.has("max_total_tokens")) {
    spec.max_total_tokens = parse_limit(root.child(params, "max_total_tokens"));
  }
  if (params.has("prefix")) spec.prefix = parse_prefix(root.child(params, "prefix"));
  if (params.has("session")) spec.session = parse_session(root.child(params, "session"));
  params.finish();
  return spec;
}

}  // namespace servesim
