#include "workload/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace servesim {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

/// What a message shows of a value: numbers and strings themselves, else their kind.
std::string text_of(element value) {
  switch (value.type()) {
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::BOOL:
    case element_type::NULL_VALUE:
    case element_type::DOUBLE:
      return simdjson::minify(value);
    case element_type::STRING:
      return std::string(std::string_view(value));
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      break;
  }
  return "an object";
}

}  // namespace

JsonFields::JsonFields(std::vector<std::string> names, Unknown unknown)
    : names_(std::move(names)), unknown_(unknown) {}

void JsonFields::load(element value, const Location& where, std::string prefix) {
  where_ = where;
  prefix_ = std::move(prefix);
  seen_ = 0;
  given_ = 0;
  unknown_keys_.clear();
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    throw where_.error(
        fmt::format("{}{} is not accepted; a JSON object is", prefix_, shown(text_of(value))));
  }
  for (const simdjson::dom::key_value_pair field : object) take(field.key, field.value);
  if (!unknown_keys_.empty()) check_unknown();
}

void JsonFields::take(std::string_view key, element value) {
  // Rows of a trace mostly have the same keys in the same order: go on after the last one found.
  for (std::size_t tried = 0; tried < names_.size(); ++tried) {
    const std::size_t field = next_ < names_.size() ? next_++ : (next_ = 1, std::size_t{0});
    if (names_[field] != key) continue;
    const std::uint32_t bit = std::uint32_t{1} << field;
    if ((seen_ & bit) != 0) throw error(field, "is given twice");
    seen_ |= bit;
    if (!value.is_null()) given_ |= bit;
    values_[field] = value;
    return;
  }
  unknown_keys_.push_back(key);
}

void JsonFields::check_unknown() const {
  if (unknown_ == Unknown::kRefused) {
    throw where_.error(
        fmt::format("{}{}", prefix_, unknown_name("field", unknown_keys_.front(), names_).what()));
  }
  if (unknown_keys_.size() < 2) return;
  std::vector<std::string_view> sorted = unknown_keys_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw where_.error(fmt::format("{}field {} is given twice", prefix_, shown(*twice)));
  }
}

std::size_t JsonFields::either(std::size_t a, std::size_t b) const {
  if (has(a) && has(b)) {
    throw error(a, fmt::format("is given as '{}' too; only one is accepted", names_[b]));
  }
  return has(b) ? b : a;
}

element JsonFields::require(std::size_t field) const {
  if (has(field)) return values_[field];
  std::vector<std::string> present(unknown_keys_.begin(), unknown_keys_.end());
  const std::string near = nearest_name(names_[field], present);
  throw error(field, near.empty() ? std::string("is missing")
                                  : fmt::format("is missing; is {} meant for it?", shown(near)));
}

std::int64_t JsonFields::whole(std::size_t field, std::int64_t low, std::int64_t high,
                               std::string_view accepted) const {
  const element value = require(field);
  std::int64_t whole = 0;
  double real = 0;
  if (value.is_int64() && value.get(whole) == simdjson::SUCCESS) {
    if (whole >= low && whole <= high) return whole;
  } else if (value.is_double() && value.get(real) == simdjson::SUCCESS) {
    if (real >= static_cast<double>(low) && real <= static_cast<double>(high) &&
        std::trunc(real) == real) {
      return static_cast<std::int64_t>(real);
    }
  }
  throw refused(field, value, accepted);
}

std::int64_t JsonFields::tokens(std::size_t field) const {
  return whole(field, 0, kMostTokens, "a whole number of tokens from 0 to 2147483647");
}

SimTime JsonFields::time(std::size_t field, std::int64_t unit_ns) const {
  const element value = require(field);
  std::int64_t whole = 0;
  if (value.is_int64() && value.get(whole) == simdjson::SUCCESS) {
    const auto latest = static_cast<std::int64_t>(kLatestSeconds * 1e9) / unit_ns;
    if (whole >= 0 && whole <= latest) return SimTime(whole * unit_ns);
  }
  double real = 0;
  if (!value.is_number() || value.get(real) != simdjson::SUCCESS) {
    throw refused(field, value, "a finite time from 0 to 3.2e9 s");
  }
  return checked_time(real, unit_ns, text_of(value), prefix_ + names_[field], where_);
}

simdjson::dom::array JsonFields::array(std::size_t field) const {
  const element value = require(field);
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) throw refused(field, value, "an array");
  return array;
}

void JsonFields::hash_ids(std::size_t field, std::vector<std::uint64_t>& ids) const {
  const simdjson::dom::array values = array(field);
  ids.clear();
  ids.reserve(values.size());
  for (const element value : values) {
    std::uint64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS) {
      throw refused(field, value, "an array of whole numbers from 0 to 18446744073709551615");
    }
    ids.push_back(id);
  }
}

void JsonFields::text(std::size_t field, std::string& out) const {
  const element value = require(field);
  std::string_view string;
  std::int64_t number = 0;
  if (value.get(string) == simdjson::SUCCESS) {
    out.assign(string);
  } else if (value.is_int64() && value.get(number) == simdjson::SUCCESS) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out.assign(digits.data(), end);
  } else {
    throw refused(field, value, "a string or a whole number");
  }
}

InputError JsonFields::error(std::size_t field, std::string_view message) const {
  return where_.error(fmt::format("field '{}{}' {}", prefix_, names_[field], message));
}

InputError JsonFields::refused(std::size_t field, element value, std::string_view accepted) const {
  return refused_value(where_, prefix_ + names_[field], text_of(value), accepted);
}

}  // namespace servesim
