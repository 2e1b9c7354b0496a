#include "workload/field_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace servesim {
namespace {

constexpr std::string_view kTokensAccepted = "a whole number of tokens from 0 to 2147483647";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool parse_double(std::string_view text, double& value) {
  text = trimmed(text);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && !text.empty();
}

}  // namespace

std::string shown(std::string_view value) {
  constexpr std::size_t kMostShown = 60;
  std::string text(value.substr(0, kMostShown));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return fmt::format("'{}{}'", text, value.size() > kMostShown ? "..." : "");
}

InputError refused_value(const Location& where, std::string_view field, std::string_view value,
                         std::string_view accepted) {
  return where.error(
      fmt::format("field '{}': {} is not accepted; {} is", field, shown(value), accepted));
}

std::int64_t parse_tokens(std::string_view text, std::string_view field, const Location& where) {
  constexpr std::size_t kFastDigits = 9;
  std::int64_t tokens = 0;
  bool digits_only = !text.empty() && text.size() <= kFastDigits;
  for (std::size_t i = 0; digits_only && i < text.size(); ++i) {
    digits_only = text[i] >= '0' && text[i] <= '9';
    tokens = tokens * 10 + (text[i] - '0');
  }
  if (digits_only) return tokens;
  double value = 0;
  if (!parse_double(text, value) || !(value >= 0 && value <= static_cast<double>(kMostTokens)) ||
      std::trunc(value) != value) {
    throw refused_value(where, field, text, kTokensAccepted);
  }
  return static_cast<std::int64_t>(value);
}

SimTime checked_time(double value, std::int64_t unit_ns, std::string_view text,
                     std::string_view field, const Location& where) {
  const double ns = value * static_cast<double>(unit_ns);
  if (!(ns >= 0 && ns <= kLatestSeconds * 1e9)) {
    throw refused_value(where, field, text, "a finite time from 0 to 3.2e9 s");
  }
  return SimTime(std::llround(ns));
}

SimTime parse_time(std::string_view text, std::int64_t unit_ns, std::string_view field,
                   const Location& where) {
  double value = 0;
  if (!parse_double(text, value)) {
    throw refused_value(where, field, text, "a finite time from 0 to 3.2e9 s");
  }
  return checked_time(value, unit_ns, text, field, where);
}

}  // namespace servesim
