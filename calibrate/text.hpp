/// Formatting without a library: the measuring half of calibrate builds with a compiler alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace servesim::calibrate {

/// printf() into a string.
std::string print_to_string(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// A CSV field, in double quotes when it holds a comma or a quote.
std::string csv_field(std::string_view text);

/// A JSON string literal, quotes included; control characters escaped.
std::string json_string(std::string_view text);

/// A number as JSON has it: the shortest of `%.*g` with `digits`; null when it is not finite.
std::string json_number(double value, int digits = 6);

/// Members of a JSON object in the order they were added; values are JSON already.
class JsonObject {
 public:
  JsonObject& raw(std::string_view key, std::string_view json);
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& number(std::string_view key, double value, int digits = 6);
  JsonObject& boolean(std::string_view key, bool value);
  /// Indented by two spaces a level, `depth` levels deep.
  std::string str(int depth = 0) const;

 private:
  struct Member {
    std::string key, value;
  };
  std::vector<Member> members_;
};

/// A JSON array of values that are JSON already, one a line.
std::string json_array(const std::vector<std::string>& values, int depth = 0);

/// Writes `content` under a temporary name beside `path` and renames it. Throws InputError.
void write_file(const std::string& path, std::string_view content);

/// The whole of a file; empty when it cannot be read.
std::string read_text(const std::string& path);

std::string trimmed(std::string_view text);
std::string lower_case(std::string_view text);

}  // namespace servesim::calibrate
