#include "core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace servesim {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

}  // namespace

InputError input_error_at(std::string_view file, std::uint64_t line, std::string_view message) {
  return InputError(fmt::format("{}:{}: {}", file, line, message));
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestNameCompared = 100;
  if (name.size() > kLongestNameCompared) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (name.size() >= 3 && candidate.starts_with(name)) return candidate;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

InputError unknown_name(std::string_view kind, std::string_view name,
                        const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  return InputError(fmt::format("unknown {} '{}'{}; known: {}", kind, name.substr(0, 100),
                                near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
                                fmt::join(known, ", ")));
}

}  // namespace servesim
