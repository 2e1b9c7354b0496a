/// Reading the values of a trace's fields from text, and refusing bad ones.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/time.hpp"

namespace servesim {

/// The most tokens one request may state.
inline constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();
/// The latest arrival and the longest delay, about 100 years.
inline constexpr double kLatestSeconds = 3.2e9;

/// A line of a file. The name must outlive it.
struct Location {
  std::string_view file;
  std::uint64_t line = 0;

  InputError error(std::string_view message) const { return input_error_at(file, line, message); }
};

/// `value` as a message may show it: quoted, short and printable.
std::string shown(std::string_view value);

/// "FILE:LINE: field 'FIELD': VALUE is not accepted; ACCEPTED is".
InputError refused_value(const Location& where, std::string_view field, std::string_view value,
                         std::string_view accepted);

/// Tokens from decimal text ("374", "374.0"). Throws InputError unless whole and in
/// [0, kMostTokens].
std::int64_t parse_tokens(std::string_view text, std::string_view field, const Location& where);

/// A time from decimal text in units of `unit_ns` nanoseconds. Throws InputError unless finite and
/// in [0, kLatestSeconds].
SimTime parse_time(std::string_view text, std::int64_t unit_ns, std::string_view field,
                   const Location& where);

/// The same from a number that is already parsed; `text` is for the message.
SimTime checked_time(double value, std::int64_t unit_ns, std::string_view text,
                     std::string_view field, const Location& where);

}  // namespace servesim
