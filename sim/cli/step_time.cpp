#include "cli/step_time.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/units.hpp"

namespace servesim {
namespace {

double parse_us(std::string_view text, std::string_view name, double most) {
  const double value = parse_number(text, fmt::format("--step-time linear: {}", name));
  if (value < 0 || value > most) {
    throw InputError(fmt::format("--step-time linear: {}={}: accepted: 0 to {}", name, text, most));
  }
  return value;
}

}  // namespace

std::string StepTime::text() const {
  return is_linear() ? fmt::format("linear:base_us={},per_token_us={}", base_us, per_token_us)
                     : model;
}

StepTime parse_step_time(std::string_view text) {
  constexpr std::string_view kLinear = "linear:";
  StepTime result;
  if (text == "roofline") return result;
  if (!text.starts_with(kLinear)) {
    throw InputError(fmt::format(
        "--step-time {}: accepted: roofline, or linear:base_us=B,per_token_us=P", text));
  }
  result.model = "linear";
  bool has_base = false;
  bool has_per_token = false;
  std::string_view rest = text.substr(kLinear.size());
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    if (key == "base_us" && !has_base) {
      result.base_us = parse_us(value, key, kLongestBaseUs);
      has_base = true;
    } else if (key == "per_token_us" && !has_per_token) {
      result.per_token_us = parse_us(value, key, kLongestTokenUs);
      has_per_token = true;
    } else {
      throw InputError(
          fmt::format("--step-time {}: '{}' is not base_us=B or per_token_us=P, each at most once",
                      text, part));
    }
  }
  if (!has_base && !has_per_token) {
    throw InputError(fmt::format("--step-time {}: base_us=B,per_token_us=P are missing", text));
  }
  if (result.base_us == 0 && result.per_token_us == 0) {
    throw InputError(fmt::format("--step-time {}: a step must take some time", text));
  }
  return result;
}

}  // namespace servesim
