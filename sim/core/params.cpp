#include "core/params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "core/hash.hpp"

namespace servesim {

Params::Params(const nlohmann::json& object, std::string origin, std::string pointer)
    : object_(object), origin_(std::move(origin)), pointer_(std::move(pointer)) {
  if (!object_.is_object()) {
    throw InputError(fmt::format("{}: {} must be a JSON object, not {}", origin_,
                                 pointer_.empty() ? "the document" : pointer_,
                                 object_.type_name()));
  }
}

InputError Params::error(const std::string& key, std::string_view message) const {
  return InputError(fmt::format("{}: {}/{}: {}", origin_, pointer_, key, message));
}

const nlohmann::json& Params::get(const std::string& key) {
  read_.insert(key);
  const auto found = object_.find(key);
  if (found == object_.end()) throw error(key, "is missing");
  return *found;
}

template <>
bool Params::required<bool>(const std::string& key) {
  const nlohmann::json& value = get(key);
  if (!value.is_boolean())
    throw error(key, fmt::format("must be true or false, not {}", value.dump()));
  return value.get<bool>();
}

template <>
std::string Params::required<std::string>(const std::string& key) {
  const nlohmann::json& value = get(key);
  if (!value.is_string()) throw error(key, fmt::format("must be a string, not {}", value.dump()));
  return value.get<std::string>();
}

template <>
double Params::required<double>(const std::string& key) {
  const nlohmann::json& value = get(key);
  if (!value.is_number()) throw error(key, fmt::format("must be a number, not {}", value.dump()));
  return value.get<double>();
}

template <>
std::int64_t Params::required<std::int64_t>(const std::string& key) {
  const nlohmann::json& value = get(key);
  const bool whole_double = value.is_number_float() && std::abs(value.get<double>()) < 9e15 &&
                            std::trunc(value.get<double>()) == value.get<double>();
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits && !whole_double) {
    throw error(key, fmt::format("must be a whole number, not {}", value.dump()));
  }
  return whole_double ? static_cast<std::int64_t>(value.get<double>()) : value.get<std::int64_t>();
}

double Params::number(const std::string& key, double low, double high) {
  const double value = required<double>(key);
  if (!(value >= low && value <= high)) {
    throw error(key, fmt::format("{} is out of range; accepted: {} to {}", value, low, high));
  }
  return value;
}

std::int64_t Params::integer(const std::string& key, std::int64_t low, std::int64_t high) {
  const std::int64_t value = required<std::int64_t>(key);
  if (value < low || value > high) {
    throw error(key, fmt::format("{} is out of range; accepted: {} to {}", value, low, high));
  }
  return value;
}

Params Params::child(const std::string& key) {
  return Params(get(key), origin_, pointer_ + "/" + key);
}

void Params::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (read_.contains(key)) continue;
    std::vector<std::string> known(read_.begin(), read_.end());
    std::sort(known.begin(), known.end());
    throw error(key, unknown_name("key", key, known).what());
  }
}

namespace {

/// Refuses what nlohmann::json would take: nesting without end, and keys given twice.
class ParseGuard {
 public:
  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    constexpr std::size_t kDeepestNesting = 64;
    using Event = nlohmann::json::parse_event_t;
    const auto level = static_cast<std::size_t>(depth);
    if (level > kDeepestNesting) throw InputError("nested too deeply");
    if (event == Event::object_start) {
      keys_.resize(std::max(keys_.size(), level + 2));
      keys_[level + 1].clear();
    } else if (event == Event::key) {
      const auto key = value.get<std::string>();
      if (!keys_[level].insert(key).second) {
        throw InputError(fmt::format("the key '{}' is given twice", key));
      }
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the object that is open at each depth
};

/// "PATH:LINE: is not valid JSON: WHAT", without the library's own prefix.
InputError syntax_error(const std::string& path, const std::string& text,
                        const nlohmann::json::parse_error& error) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
  std::string what = error.what();
  const std::size_t colon = what.find(": ");
  if (colon != std::string::npos) what.erase(0, colon + 2);
  return InputError(fmt::format("{}:{}: is not valid JSON: {}", path,
                                1 + std::count(text.begin(), end, '\n'), what));
}

}  // namespace

nlohmann::json read_json_file(const std::string& path) {
  std::string ignored;
  return read_json_file(path, ignored);
}

nlohmann::json read_json_file(const std::string& path, std::string& hash) {
  if (std::filesystem::is_directory(path)) {
    throw InputError(fmt::format("{}: is a directory; a JSON file is expected", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  if (text.empty()) throw InputError(fmt::format("{}: is empty; a JSON file is expected", path));
  hash = content_hash(text);
  try {
    ParseGuard guard;
    return nlohmann::json::parse(text, std::ref(guard));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path, error.what()));
  } catch (const nlohmann::json::parse_error& error) {
    throw syntax_error(path, text, error);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{}: is not valid JSON: {}", path, error.what()));
  }
}

}  // namespace servesim
