/// Reads model dimensions: models/llm/*.json and Hugging Face config.json files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "model/model_spec.hpp"

namespace servesim {

/// Names of the models that ship, sorted.
std::vector<std::string> model_names();

/// The model called `name_or_path`: a shipped name, or (when it contains '/' or ends in ".json") a
/// path to a config.json. Throws InputError for unknown names and architectures and for missing,
/// absurd or contradictory dimensions; the message names the file and the field.
ModelSpec load_model(const std::string& name_or_path);

/// The spec in a parsed config.json; `origin` is named in errors. A multimodal config is read at
/// its `text_config`.
ModelSpec model_from_config(const nlohmann::json& config, const std::string& name,
                            const std::string& origin);

}  // namespace servesim
