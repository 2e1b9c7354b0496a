/// Reads a Hugging Face config.json: Params that tolerates unknown keys, with the lists and nulls
/// such files contain.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/params.hpp"

namespace servesim {

/// A view of one config object; unread keys are no error, since such files hold dozens of them.
class ConfigReader : public Params {
 public:
  ConfigReader(const nlohmann::json& object, std::string origin)
      : Params(object, std::move(origin)), json_(object) {}

  /// True when `key` is there and not null.
  bool has_value(const std::string& key) const {
    const auto found = json_.find(key);
    return found != json_.end() && !found->is_null();
  }

  /// Length of the array under `key`; 0 when it is missing or null.
  std::size_t array_size(const std::string& key) const { return array(key).size(); }

  /// The strings under `key`; empty when it is missing or null.
  std::vector<std::string> strings(const std::string& key) const {
    std::vector<std::string> values;
    for (const nlohmann::json& value : array(key)) {
      if (!value.is_string()) throw error(key, "must be a list of strings");
      values.push_back(value.get<std::string>());
    }
    return values;
  }

 private:
  const nlohmann::json& array(const std::string& key) const {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    if (!has_value(key)) return kEmpty;
    const nlohmann::json& value = json_.at(key);
    if (!value.is_array()) throw error(key, "must be a list");
    return value;
  }

  const nlohmann::json& json_;
};

}  // namespace servesim
