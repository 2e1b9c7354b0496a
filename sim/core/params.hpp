/// Typed reading of a JSON object that fails by name and lets no key pass unread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/error.hpp"

namespace servesim {

/// A view of one JSON object. Every error names the file and the JSON pointer of the value.
class Params {
 public:
  /// `origin` is the file the object came from, `pointer` where in it ("" at the root).
  /// Throws InputError when `object` is not a JSON object.
  Params(const nlohmann::json& object, std::string origin, std::string pointer = "");

  bool has(const std::string& key) const { return object_.contains(key); }

  /// The value of `key`; T is bool, std::string, double or std::int64_t.
  template <typename T>
  T required(const std::string& key);
  template <typename T>
  T optional(const std::string& key, T fallback) {
    return object_.contains(key) && !object_.at(key).is_null() ? required<T>(key)
                                                               : ignore(key, fallback);
  }

  /// A required number within [low, high].
  double number(const std::string& key, double low, double high);
  std::int64_t integer(const std::string& key, std::int64_t low, std::int64_t high);

  /// The object under `key`.
  Params child(const std::string& key);

  /// Marks `key` as known, whatever it holds.
  void allow(const std::string& key) { read_.insert(key); }
  /// Throws InputError when a key was never read, with the nearest known one.
  void finish() const;

  /// An InputError located at `key`.
  InputError error(const std::string& key, std::string_view message) const;

 private:
  const nlohmann::json& get(const std::string& key);
  template <typename T>
  T ignore(const std::string& key, T fallback) {
    read_.insert(key);
    return fallback;
  }

  const nlohmann::json& object_;
  std::string origin_;
  std::string pointer_;
  std::unordered_set<std::string> read_;
};

template <>
bool Params::required<bool>(const std::string& key);
template <>
std::string Params::required<std::string>(const std::string& key);
template <>
double Params::required<double>(const std::string& key);
template <>
std::int64_t Params::required<std::int64_t>(const std::string& key);

/// Parses a JSON file of configuration size. Throws InputError (missing, unreadable, broken,
/// absurdly nested).
nlohmann::json read_json_file(const std::string& path);
/// The same; `hash` becomes the content_hash() of the bytes that were parsed.
nlohmann::json read_json_file(const std::string& path, std::string& hash);

}  // namespace servesim
