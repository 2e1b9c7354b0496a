#include "text.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"

namespace servesim::calibrate {

std::string print_to_string(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  text.pop_back();
  return text;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"')
      field += '\'';  // sim/cost/csv_rows.hpp knows no escaped quotes
    else
      field += c;
  }
  return field + "\"";
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += print_to_string("\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string json_number(double value, int digits) {
  return std::isfinite(value) ? print_to_string("%.*g", digits, value) : "null";
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
  members_.push_back({std::string(key), std::string(json)});
  return *this;
}
JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  return raw(key, json_string(value));
}
JsonObject& JsonObject::number(std::string_view key, double value, int digits) {
  return raw(key, json_number(value, digits));
}
JsonObject& JsonObject::boolean(std::string_view key, bool value) {
  return raw(key, value ? "true" : "false");
}

std::string JsonObject::str(int depth) const {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  std::string out = "{";
  for (std::size_t i = 0; i < members_.size(); ++i) {
    out += (i == 0 ? "\n" : ",\n") + indent + "  " + json_string(members_[i].key) + ": " +
           members_[i].value;
  }
  return out + (members_.empty() ? "}" : "\n" + indent + "}");
}

std::string json_array(const std::vector<std::string>& values, int depth) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    out += (i == 0 ? "\n" : ",\n") + indent + "  " + values[i];
  }
  return out + (values.empty() ? "]" : "\n" + indent + "]");
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = print_to_string("%s.%d.tmp", path.c_str(), getpid());
  std::ofstream out(temporary, std::ios::binary);
  out << content;
  out.close();
  std::error_code failed;
  if (!out) failed = std::make_error_code(std::errc::io_error);
  if (!failed) std::filesystem::rename(temporary, path, failed);
  if (!failed) return;
  std::remove(temporary.c_str());
  throw InputError(path + ": cannot be written: " + failed.message());
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace servesim::calibrate
