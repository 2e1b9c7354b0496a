/// Parsing of sizes, counts and times as people write them. "64GB" and "64GiB" differ.
#pragma once

#include <cstdint>
#include <string_view>

namespace servesim {

/// Bytes from "64GiB", "64GB", "1.5TiB", "4096". Throws InputError naming `what`.
std::int64_t parse_bytes(std::string_view text, std::string_view what);

/// A finite decimal number that uses the whole of `text`. Throws InputError naming `what`.
double parse_number(std::string_view text, std::string_view what);

/// A whole number within [low, high] that uses the whole of `text`. Throws InputError naming
/// `what`.
std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t low,
                           std::int64_t high);

}  // namespace servesim
