/// Sequential reading of a trace's text, whole or by lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workload/decoder.hpp"
#include "workload/field_text.hpp"
#include "workload/input_file.hpp"

namespace servesim {

/// The longest line, or single JSON value, that is read.
inline constexpr std::size_t kLongestLineBytes = std::size_t{64} << 20;

/// A growing view of the text not yet consumed: all of it for a plain file, a buffer for a
/// compressed one. A byte-order mark at the start is skipped.
class TextWindow {
 public:
  explicit TextWindow(std::shared_ptr<const InputFile> file);

  const std::string& file_name() const { return file_->name(); }
  /// InputFile::kPadding bytes past the end may be read.
  std::string_view unread() const { return {begin_, static_cast<std::size_t>(end_ - begin_)}; }
  void consume(std::size_t bytes) { begin_ += bytes; }
  /// Makes `unread()` longer, which invalidates earlier views; false at the end of the text.
  bool extend();

 private:
  std::shared_ptr<const InputFile> file_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<char> buffer_;
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
};

/// Yields the lines that say something: no blank ones, no `#` comments, no line ends (LF or CRLF).
class LineReader {
 public:
  explicit LineReader(std::shared_ptr<const InputFile> file) : window_(std::move(file)) {}

  /// The next line, valid until the next call; InputFile::kPadding bytes past it may be read.
  /// Throws InputError when a line is longer than kLongestLineBytes.
  bool next(std::string_view& line) {
    do {
      if (!raw_line(line)) return false;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    } while (says_nothing(line));
    return true;
  }

  /// The place of the line last read.
  Location location() const { return {window_.file_name(), line_}; }

 private:
  static bool says_nothing(std::string_view line) {
    if (!line.empty() && line.front() > '#') return false;
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos || line[first] == '#';
  }

  bool raw_line(std::string_view& line) {
    const std::string_view unread = window_.unread();
    const std::size_t scanned = std::min(unread.size(), kLongestLineBytes);
    const void* newline = std::memchr(unread.data(), '\n', scanned);
    if (newline == nullptr) return long_or_last_line(line);
    const auto length = static_cast<std::size_t>(static_cast<const char*>(newline) - unread.data());
    line = unread.substr(0, length);
    window_.consume(length + 1);
    ++line_;
    return true;
  }
  bool long_or_last_line(std::string_view& line);

  TextWindow window_;
  std::uint64_t line_ = 0;
};

}  // namespace servesim
