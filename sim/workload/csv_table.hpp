/// CSV with a header: columns are found by name, whatever their order.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/line_reader.hpp"

namespace servesim {

/// The column names of a header line: trimmed, without quotes.
std::vector<std::string> split_csv_header(std::string_view line);

/// Reads a header, then rows. A field may stand in double quotes but hold no comma.
class CsvTable {
 public:
  /// Throws InputError when the header is missing or names a column twice.
  explicit CsvTable(std::shared_ptr<const InputFile> file);

  /// The index of a column. Throws InputError, suggesting a near name, when there is none.
  std::size_t column(std::string_view name) const;
  std::optional<std::size_t> optional_column(std::string_view name) const;
  const std::vector<std::string>& header() const { return header_; }

  /// Reads a line without splitting it.
  bool next_line(std::string_view& line) { return lines_.next(line); }
  /// Splits a line into `fields()`. Throws InputError when their number is not the header's.
  void split(std::string_view line);
  bool next() {
    std::string_view line;
    if (!lines_.next(line)) return false;
    split(line);
    return true;
  }

  std::string_view operator[](std::size_t column) const { return fields_[column]; }
  Location location() const { return lines_.location(); }

  std::int64_t tokens(std::size_t column) const {
    return parse_tokens(fields_[column], header_[column], location());
  }
  SimTime time(std::size_t column, std::int64_t unit_ns) const {
    return parse_time(fields_[column], unit_ns, header_[column], location());
  }

 private:
  LineReader lines_;
  std::vector<std::string> header_;
  std::vector<std::string_view> fields_;
};

}  // namespace servesim
