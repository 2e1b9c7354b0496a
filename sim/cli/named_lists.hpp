/// What can be chosen by name, for `simulate list` and for completion.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "registry/registries.hpp"

namespace servesim {

struct NamedList {
  std::string name;  ///< "policies"
  std::string flag;  ///< "--policy", or "generate --spec"
  std::function<std::vector<std::pair<std::string, std::string>>()> entries;  ///< name, sentence
};

/// `registries` must outlive the result.
std::vector<NamedList> named_lists(const Registries& registries);

}  // namespace servesim
