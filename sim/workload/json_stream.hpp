/// JSON values one after another: one per line, or anyhow, or in an array.
#pragma once

#include <simdjson.h>

#include <memory>

#include "workload/line_reader.hpp"

namespace servesim {

/// JSONL: one value per line.
class JsonLines {
 public:
  explicit JsonLines(std::shared_ptr<const InputFile> file) : lines_(std::move(file)) {}
  /// The next line's value, valid until the next call. Throws InputError for anything but one valid
  /// JSON value on a line.
  bool next(simdjson::dom::element& value) {
    std::string_view line;
    if (!next_line(line)) return false;
    value = parse(line);
    return true;
  }
  /// The next line as text, for a reader that knows a quicker way for some of them.
  bool next_line(std::string_view& line) { return lines_.next(line); }
  /// The value of the line last read. Throws InputError for anything but one valid JSON value.
  simdjson::dom::element parse(std::string_view line);
  Location location() const { return lines_.location(); }

 private:
  LineReader lines_;
  simdjson::dom::parser parser_;
};

/// JSON objects of any layout: a single one, several one after another, or the elements of one
/// array. Memory is bounded by the largest object.
class JsonStream {
 public:
  explicit JsonStream(std::shared_ptr<const InputFile> file) : window_(std::move(file)) {}
  /// The next object, valid until the next call. Throws InputError for broken JSON and for an
  /// object longer than kLongestLineBytes.
  bool next(simdjson::dom::element& value);
  /// The line on which the object last read starts.
  Location location() const { return {window_.file_name(), start_line_}; }

 private:
  /// Skips white space and `#` comments; '\0' at the end of the text.
  char peek();
  void consume(std::size_t bytes);
  bool enter_next();
  std::size_t object_length();

  TextWindow window_;
  simdjson::dom::parser parser_;
  std::uint64_t line_ = 1;
  std::uint64_t start_line_ = 1;
  bool started_ = false;
  bool in_array_ = false;
  bool first_element_ = true;
};

}  // namespace servesim
