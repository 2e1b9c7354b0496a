/// The model architectures we know, and what each reads from its config.json beyond the common
/// dimensions. To add one: a function and a line in the table of architectures.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config_reader.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// One architecture: its Hugging Face names and how its config differs from Llama's.
struct Architecture {
  std::string_view class_name;  ///< as in "architectures", e.g. "LlamaForCausalLM"
  std::string_view model_type;  ///< as in "model_type", e.g. "llama"
  bool tied_by_default;         ///< what tie_word_embeddings means when it is missing
  void (*read)(ConfigReader& config, ModelSpec& spec);  ///< adds what is particular to it
};

/// The architecture whose class name or model type is `name`, or nullptr.
const Architecture* find_architecture(std::string_view name);

/// Class names of all of them, in table order.
std::vector<std::string> architecture_names();

}  // namespace servesim
