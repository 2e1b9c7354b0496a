/// Compares schedule logs and says readably where they part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// One step as text, one field a line.
std::string describe(const LoggedStep& step);

/// The names of the fields in which two steps differ.
std::vector<std::string> differing_fields(const LoggedStep& expected, const LoggedStep& actual);

/// The first difference of two logs, readable, with both steps; nothing when they are equal.
std::optional<std::string> compare_logs(const std::vector<LoggedStep>& expected,
                                        const std::vector<LoggedStep>& actual);

}  // namespace servesim::oracle
