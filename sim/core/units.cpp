#include "core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/error.hpp"

namespace servesim {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                       {"B", 1},
                                       {"kB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12},
                                       {"KiB", 1024.0},
                                       {"MiB", 1048576.0},
                                       {"GiB", 1073741824.0},
                                       {"TiB", 1099511627776.0}}};

}  // namespace

std::int64_t parse_bytes(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& unit : kUnits) {
    if (error == std::errc{} && suffix == unit.name && value > 0 && value * unit.bytes < 9e18) {
      return std::llround(value * unit.bytes);
    }
  }
  throw InputError(
      fmt::format("{}: '{}' is not a size; accepted: a positive number with B, kB, MB, GB, TB, "
                  "KiB, MiB, GiB or TiB",
                  what, text));
}

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    throw InputError(fmt::format("{}: '{}' is not a number", what, text));
  }
  return value;
}

std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t low,
                           std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    throw InputError(fmt::format("{}: '{}' is not accepted; a whole number from {} to {} is", what,
                                 text, low, high));
  }
  return value;
}

}  // namespace servesim
