/// A small CSV file held in memory, as measurement tables come: a header, then rows; fields may
/// stand in double quotes and hold commas then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servesim {

/// Reads the whole file and answers by row and column.
class CsvRows {
 public:
  /// Throws InputError when the file cannot be read, has no header, or a row has another number of
  /// fields than the header.
  explicit CsvRows(const std::string& path);

  std::size_t size() const { return rows_.size(); }
  /// The index of a column. Throws InputError, with the nearest name, when there is none.
  std::size_t column(std::string_view name) const;
  const std::string& text(std::size_t row, std::size_t column) const {
    return rows_[row].fields[column];
  }
  /// A finite number within [low, high]. Throws InputError with file, line and column.
  double number(std::size_t row, std::size_t column, double low, double high) const;
  /// The same; nothing when the field is empty.
  std::optional<double> optional_number(std::size_t row, std::size_t column, double low,
                                        double high) const;

 private:
  struct Row {
    std::uint64_t line;
    std::vector<std::string> fields;
  };
  std::string path_;
  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

}  // namespace servesim
