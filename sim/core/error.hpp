/// The one exception for everything a user can put right: bad usage, input or configuration.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace servesim {

/// Thrown for a fault the user can mend; the program prints `what()` as one line and exits with 2.
/// The message says what is wrong, where (file, line, field, value) and what would be accepted.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An InputError located in a file: "FILE:LINE: message". Lines count from 1.
InputError input_error_at(std::string_view file, std::uint64_t line, std::string_view message);

/// The first candidate that begins with `name` (three characters or more), else the closest by edit
/// distance, or empty when none is near enough to be a typo.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// "unknown KIND 'NAME'; did you mean 'X'? known: a, b, c".
InputError unknown_name(std::string_view kind, std::string_view name,
                        const std::vector<std::string>& known);

}  // namespace servesim
