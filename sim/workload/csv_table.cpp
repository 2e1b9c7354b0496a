#include "workload/csv_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace servesim {
namespace {

std::string_view bare(std::string_view field) {
  const std::size_t first = field.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  field = field.substr(first, field.find_last_not_of(" \t") - first + 1);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
    field = field.substr(1, field.size() - 2);
  }
  return field;
}

}  // namespace

std::vector<std::string> split_csv_header(std::string_view line) {
  constexpr std::size_t kMostColumns = 1000;
  std::vector<std::string> names;
  while (names.size() < kMostColumns) {
    const std::size_t comma = line.find(',');
    names.emplace_back(bare(line.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  return names;
}

CsvTable::CsvTable(std::shared_ptr<const InputFile> file) : lines_(std::move(file)) {
  std::string_view line;
  if (!lines_.next(line)) throw location().error("a CSV header is expected, the file holds none");
  header_ = split_csv_header(line);
  std::vector<std::string> sorted = header_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw location().error(fmt::format("the header names column {} twice", shown(*twice)));
  }
  fields_.resize(header_.size());
}

std::optional<std::size_t> CsvTable::optional_column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

std::size_t CsvTable::column(std::string_view name) const {
  if (const auto found = optional_column(name)) return *found;
  const std::string near = nearest_name(name, header_);
  const std::string hint =
      near.empty()
          ? fmt::format("the header has: {}", shown(fmt::format("{}", fmt::join(header_, ", "))))
          : fmt::format("is {} meant?", shown(near));
  throw location().error(fmt::format("the header lacks column '{}'; {}", name, hint));
}

void CsvTable::split(std::string_view line) {
  std::size_t count = 0;
  const char* start = line.data();
  const char* const end = start + line.size();
  for (const char* p = start;; ++p) {
    if (p != end && *p != ',') continue;
    if (count < fields_.size()) {
      fields_[count] = bare({start, static_cast<std::size_t>(p - start)});
    }
    ++count;
    if (p == end) break;
    start = p + 1;
  }
  if (count != fields_.size()) {
    throw location().error(
        fmt::format("the row has {} fields, the header has {}", count, fields_.size()));
  }
}

}  // namespace servesim
