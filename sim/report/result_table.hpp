/// The comparison a person reads: one row per run, best values marked, warnings below.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/run_result.hpp"
#include "report/text_table.hpp"

namespace servesim {

/// One row: a run and the values of the settings that vary between the runs, by name.
struct ResultRow {
  const RunResult* result;
  std::vector<std::pair<std::string, std::string>> varied;
};

/// `headline` says what all rows have in common. REQUIRES: all rows vary the same settings.
std::string result_table(const std::string& headline, const std::vector<ResultRow>& rows,
                         const TextStyle& style);

/// The warnings of `rows` alone, each once, a line each.
std::string result_warnings(const std::vector<ResultRow>& rows, const TextStyle& style);

/// "12,345,678".
std::string with_thousands(std::int64_t value);
/// About four significant digits, thousands separated: "12,345", "123.4", "12.34", "1.234".
std::string short_number(double value);

}  // namespace servesim
