#include "workload/json_stream.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace servesim {
namespace {

void parse_text(simdjson::dom::parser& parser, std::string_view text, const Location& where,
                simdjson::dom::element& value) {
  const simdjson::error_code error =
      parser.parse(text.data(), text.size(), /*realloc_if_needed=*/false).get(value);
  if (error == simdjson::SUCCESS) return;
  const bool not_finite =
      text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
  throw where.error(fmt::format("is not valid JSON: {}{}; it starts with {}",
                                simdjson::error_message(error),
                                not_finite ? " (NaN and Infinity are not JSON, times and lengths "
                                             "must be finite)"
                                           : "",
                                shown(text)));
}

}  // namespace

simdjson::dom::element JsonLines::parse(std::string_view line) {
  simdjson::dom::element value;
  parse_text(parser_, line, lines_.location(), value);
  return value;
}

bool JsonStream::next(simdjson::dom::element& value) {
  if (!enter_next()) return false;
  start_line_ = line_;
  if (peek() != '{') {
    throw location().error(
        fmt::format("a JSON object is expected, not {}", shown(window_.unread().substr(0, 20))));
  }
  const std::size_t length = object_length();
  parse_text(parser_, window_.unread().substr(0, length), location(), value);
  consume(length);
  return true;
}

/// Moves to the start of the next object; false after the last.
bool JsonStream::enter_next() {
  if (!started_) {
    started_ = true;
    in_array_ = peek() == '[';
    if (in_array_) consume(1);
  }
  const char c = peek();
  start_line_ = line_;
  if (!in_array_) return c != '\0';
  if (c == ']') {
    consume(1);
    if (peek() != '\0') throw location().error("there is text after the end of the array");
    return false;
  }
  if (c == '\0') throw location().error("the array does not end: the file is truncated");
  if (!first_element_) {
    if (c != ',') throw location().error("',' or ']' is expected after an element of the array");
    consume(1);
    peek();
  }
  first_element_ = false;
  return true;
}

char JsonStream::peek() {
  bool comment = false;
  while (true) {
    const std::string_view text = window_.unread();
    std::size_t i = 0;
    for (; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\n') {
        comment = false;
      } else if (!comment && c == '#') {
        comment = true;
      } else if (!comment && c != ' ' && c != '\t' && c != '\r') {
        break;
      }
    }
    consume(i);
    if (!window_.unread().empty()) return window_.unread().front();
    if (!window_.extend()) return '\0';
  }
}

void JsonStream::consume(std::size_t bytes) {
  const std::string_view text = window_.unread().substr(0, bytes);
  line_ += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  window_.consume(bytes);
}

/// The length of the object that the text starts with, told by its brackets alone.
std::size_t JsonStream::object_length() {
  std::size_t i = 0;
  std::size_t depth = 0;
  bool in_string = false;
  while (true) {
    const std::string_view text = window_.unread();
    for (; i < text.size(); ++i) {
      const char c = text[i];
      if (in_string) {
        if (c == '\\') ++i;
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        return i + 1;
      }
      if (i > kLongestLineBytes) {
        throw location().error("the object is longer than 64 MiB, the most that is accepted");
      }
    }
    if (!window_.extend()) {
      throw location().error("the JSON object does not end: the file is truncated");
    }
  }
}

}  // namespace servesim
