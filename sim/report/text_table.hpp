/// Aligned columns of text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servesim {

struct TextStyle {
  bool color = false;
  std::size_t width = 0;  ///< columns of the terminal; 0: unlimited
};

/// One cell; a marked one is among the best of its column.
struct TextCell {
  std::string text;
  bool marked = false;
};

/// A table with a two-line heading: a group name over each run of columns that share it, and the
/// columns' own names.
class TextTable {
 public:
  /// Columns are dropped, highest `expendable` first, when the terminal is too narrow; those with 0
  /// always stay.
  void add_column(std::string group, std::string name, bool align_right, int expendable = 0);
  /// REQUIRES: as many cells as columns.
  void add_row(std::vector<TextCell> cells) { rows_.push_back(std::move(cells)); }

  std::string render(const TextStyle& style) const;

 private:
  struct Column {
    std::string group, name;
    bool align_right;
    int expendable;
  };
  std::size_t width_of(std::size_t column) const;
  std::vector<std::size_t> visible_columns(std::size_t limit) const;
  /// Neighbours under one group name: columns [begin, end) of the visible ones.
  struct Group {
    std::string name;
    std::size_t begin, end;
  };
  std::vector<Group> groups_of(const std::vector<std::size_t>& visible) const;
  /// Widens columns whose group name is wider than they are.
  std::string group_line(const std::vector<std::size_t>& visible,
                         std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<TextCell>> rows_;
};

/// Columns that `text` takes on a terminal: code points, of which it must hold no wide ones.
std::size_t display_width(std::string_view text);

/// ANSI sequences, or nothing without colour.
std::string paint(std::string_view text, std::string_view code, const TextStyle& style);
inline constexpr std::string_view kBold = "1";
inline constexpr std::string_view kDim = "2";
inline constexpr std::string_view kGreen = "32";
inline constexpr std::string_view kYellow = "33";

}  // namespace servesim
