#include "model/model_loader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/data_dir.hpp"
#include "model/architectures.hpp"
#include "model/config_reader.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostHidden = 1'000'000;
constexpr std::int64_t kMostChannels = 10'000'000;
constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr double kMostBytes = 1e16;

const Architecture& architecture_of(const ConfigReader& config, const nlohmann::json& json) {
  std::vector<std::string> names = config.strings("architectures");
  if (json.contains("model_type") && json.at("model_type").is_string()) {
    names.push_back(json.at("model_type").get<std::string>());
  }
  if (names.empty()) throw config.error("architectures", "is missing, and so is model_type");
  for (const std::string& name : names) {
    if (const Architecture* found = find_architecture(name)) return *found;
  }
  throw config.error("architectures",
                     unknown_name("architecture", names.front(), architecture_names()).what());
}

void read_common(ConfigReader& config, ModelSpec& spec) {
  spec.layers = config.integer("num_hidden_layers", 1, kMostLayers);
  spec.hidden = config.integer("hidden_size", 1, kMostHidden);
  spec.heads = config.integer("num_attention_heads", 1, kMostHidden);
  spec.kv_heads = config.has_value("num_key_value_heads")
                      ? config.integer("num_key_value_heads", 1, kMostHidden)
                      : spec.heads;
  if (spec.heads % spec.kv_heads != 0) {
    throw config.error(
        "num_key_value_heads",
        fmt::format("{} does not divide num_attention_heads ({})", spec.kv_heads, spec.heads));
  }
  if (config.has_value("head_dim")) {
    spec.head_dim = config.integer("head_dim", 1, kMostHidden);
  } else if (spec.hidden % spec.heads == 0) {
    spec.head_dim = spec.hidden / spec.heads;
  } else {
    throw config.error("num_attention_heads",
                       fmt::format("{} does not divide hidden_size ({}), and there is no head_dim",
                                   spec.heads, spec.hidden));
  }
  spec.intermediate = config.integer("intermediate_size", 1, kMostChannels);
  spec.vocab = config.integer("vocab_size", 1, kMostChannels);
  spec.max_position = config.integer("max_position_embeddings", 1, kMostTokens);
  if (config.has_value("vision_parameters")) {
    spec.other_parameters = config.integer("vision_parameters", 0, INT64_C(1'000'000'000'000));
  }
}

std::string name_from_path(const fs::path& path) {
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = fs::absolute(path).parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

ModelSpec with_hash(ModelSpec spec, std::string hash) {
  spec.hash = std::move(hash);
  return spec;
}

}  // namespace

ModelSpec model_from_config(const nlohmann::json& config, const std::string& name,
                            const std::string& origin) {
  ConfigReader outer(config, origin);
  const Architecture& architecture = architecture_of(outer, config);
  const bool nested = outer.has_value("text_config");
  ConfigReader reader(nested ? config.at("text_config") : config, origin);

  ModelSpec spec;
  spec.name = name;
  spec.source = outer.optional<std::string>("source", "a Hugging Face config.json");
  spec.kind = outer.optional<std::string>("kind", "datasheet");
  read_common(reader, spec);
  spec.tied_embeddings = outer.optional(
      "tie_word_embeddings", reader.optional("tie_word_embeddings", architecture.tied_by_default));
  architecture.read(reader, spec);
  if (outer.has_value("published_parameters")) {
    spec.published_parameters =
        outer.integer("published_parameters", 1, INT64_C(1'000'000'000'000'000));
  }
  if (!(spec.weight_bytes(WeightFormat::k16Bit, 1) < kMostBytes)) {
    throw InputError(fmt::format("{}: these dimensions make {:.3g} bytes of weights", origin,
                                 spec.weight_bytes(WeightFormat::k16Bit, 1)));
  }
  return spec;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  const fs::path folder = fs::path(data_dir()) / "models" / "llm";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ModelSpec load_model(const std::string& name_or_path) {
  const std::vector<std::string> names = model_names();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) {
    const std::string file =
        (fs::path(data_dir()) / "models" / "llm" / (name_or_path + ".json")).string();
    std::string hash;
    const nlohmann::json config = read_json_file(file, hash);
    for (const char* key : {"source", "kind"}) {
      if (!config.is_object() || !config.contains(key)) {
        throw InputError(fmt::format("{}: /{}: is missing", file, key));
      }
    }
    return with_hash(model_from_config(config, name_or_path, file), std::move(hash));
  }
  std::error_code ignored;
  fs::path path(name_or_path);
  if (fs::is_directory(path, ignored)) path /= "config.json";
  if (path.extension() != ".json" && !fs::exists(path, ignored)) {
    throw unknown_name("model", name_or_path, names);
  }
  std::string hash;
  const nlohmann::json config = read_json_file(path.string(), hash);
  return with_hash(model_from_config(config, name_from_path(path), path.string()), std::move(hash));
}

}  // namespace servesim
