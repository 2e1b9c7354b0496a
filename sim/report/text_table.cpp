#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace servesim {
namespace {

constexpr std::size_t kGap = 2;  // spaces between columns; the first holds the mark of a best value

std::string pad(const std::string& text, std::size_t width, bool align_right) {
  const std::size_t used = display_width(text);
  const std::string fill(width > used ? width - used : 0, ' ');
  return align_right ? fill + text : text + fill;
}

void trim_right(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string paint(std::string_view text, std::string_view code, const TextStyle& style) {
  return style.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

void TextTable::add_column(std::string group, std::string name, bool align_right, int expendable) {
  columns_.push_back({std::move(group), std::move(name), align_right, expendable});
}

std::size_t TextTable::width_of(std::size_t column) const {
  std::size_t width = display_width(columns_[column].name);
  for (const auto& row : rows_) width = std::max(width, display_width(row[column].text));
  return width;
}

std::vector<std::size_t> TextTable::visible_columns(std::size_t limit) const {
  std::vector<std::size_t> visible(columns_.size());
  std::iota(visible.begin(), visible.end(), std::size_t{0});
  if (limit == 0) return visible;
  const auto total = [&] {
    std::vector<std::size_t> widths;
    for (const std::size_t column : visible) widths.push_back(width_of(column));
    group_line(visible, widths);
    return std::accumulate(widths.begin(), widths.end(), 1 + kGap * visible.size());
  };
  while (total() > limit) {
    const auto worst =
        std::max_element(visible.begin(), visible.end(), [this](std::size_t a, std::size_t b) {
          return columns_[a].expendable <= columns_[b].expendable;
        });
    if (worst == visible.end() || columns_[*worst].expendable == 0) break;
    visible.erase(worst);
  }
  return visible;
}

std::vector<TextTable::Group> TextTable::groups_of(const std::vector<std::size_t>& visible) const {
  std::vector<Group> groups;
  for (std::size_t at = 0; at < visible.size();) {
    const std::string& name = columns_[visible[at]].group;
    std::size_t end = at + 1;
    while (!name.empty() && end < visible.size() && columns_[visible[end]].group == name) ++end;
    groups.push_back({name, at, end});
    at = end;
  }
  return groups;
}

std::string TextTable::group_line(const std::vector<std::size_t>& visible,
                                  std::vector<std::size_t>& widths) const {
  std::string line;
  for (const auto& [name, begin, end] : groups_of(visible)) {
    std::size_t room = kGap * (end - begin - 1);
    for (std::size_t i = begin; i < end; ++i) room += widths[i];
    if (name.size() > room) {
      widths[begin] += name.size() - room;
      room = name.size();
    }
    line += std::string(kGap, ' ') + pad(name, room, columns_[visible[begin]].align_right);
  }
  trim_right(line);
  return line;
}

std::string TextTable::render(const TextStyle& style) const {
  const std::vector<std::size_t> visible = visible_columns(style.width);
  std::vector<std::size_t> widths;
  for (const std::size_t column : visible) widths.push_back(width_of(column));
  const std::string groups = group_line(visible, widths);
  std::string names;
  std::size_t total = kGap;
  for (std::size_t i = 0; i < visible.size(); ++i) {
    const Column& column = columns_[visible[i]];
    names += std::string(kGap, ' ') + pad(column.name, widths[i], column.align_right);
    total += widths[i] + kGap;
  }
  trim_right(names);
  std::string rule = " ";
  for (std::size_t i = 0; i < total - 1; ++i) rule += "─";
  std::string text;
  if (!groups.empty()) text += fmt::format("{}\n", paint(groups, kDim, style));
  text += fmt::format("{}\n{}\n", paint(names, kBold, style), paint(rule, kDim, style));
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < visible.size(); ++i) {
      const TextCell& cell = row[visible[i]];
      const std::string padded = pad(cell.text, widths[i], columns_[visible[i]].align_right);
      line += ' ';
      // The mark stands in the gap to the left of the padding, next to the figure.
      if (!cell.marked) {
        line += ' ' + padded;
        continue;
      }
      const std::size_t fill = padded.size() - cell.text.size();
      line += std::string(fill, ' ') + paint("*" + cell.text, kGreen, style);
    }
    trim_right(line);
    text += line + "\n";
  }
  return text;
}

}  // namespace servesim
