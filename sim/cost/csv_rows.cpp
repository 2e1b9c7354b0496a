#include "cost/csv_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/error.hpp"
#include "core/units.hpp"

namespace servesim {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

CsvRows::CsvRows(const std::string& path) : path_(path) {
  std::ifstream in(path);
  if (!in) throw InputError(fmt::format("{}: cannot be read", path));
  std::string line;
  if (!std::getline(in, line) || line.empty()) throw input_error_at(path, 1, "no header line");
  header_ = split(line);
  for (std::uint64_t number = 2; std::getline(in, line); ++number) {
    if (line.empty() || line == "\r") continue;
    Row row{number, split(line)};
    if (row.fields.size() != header_.size()) {
      throw input_error_at(
          path, number,
          fmt::format("{} fields, but the header has {}", row.fields.size(), header_.size()));
    }
    rows_.push_back(std::move(row));
  }
}

std::size_t CsvRows::column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found != header_.end()) return static_cast<std::size_t>(found - header_.begin());
  const std::string near = nearest_name(name, header_);
  throw input_error_at(path_, 1,
                       fmt::format("no column '{}'{}", name,
                                   near.empty() ? "" : fmt::format("; the nearest is '{}'", near)));
}

double CsvRows::number(std::size_t row, std::size_t column, double low, double high) const {
  const std::string& field = rows_[row].fields[column];
  double value = 0;
  try {
    value = parse_number(field, header_[column]);
  } catch (const InputError& error) {
    throw input_error_at(path_, rows_[row].line, error.what());
  }
  if (!(value >= low && value <= high)) {
    throw input_error_at(path_, rows_[row].line,
                         fmt::format("{} = {} is out of range; accepted: {} to {}", header_[column],
                                     field, low, high));
  }
  return value;
}

std::optional<double> CsvRows::optional_number(std::size_t row, std::size_t column, double low,
                                               double high) const {
  if (rows_[row].fields[column].empty()) return std::nullopt;
  return number(row, column, low, high);
}

}  // namespace servesim
