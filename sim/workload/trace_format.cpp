#include "workload/trace_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "workload/csv_table.hpp"
#include "workload/line_reader.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

struct UnitName {
  std::string_view name;
  TimeUnit unit;
  std::int64_t ns;
};

constexpr std::array<UnitName, 5> kUnits{{{"auto", TimeUnit::kAuto, 0},
                                          {"s", TimeUnit::kSeconds, kSecondNs},
                                          {"ms", TimeUnit::kMilliseconds, kMillisecondNs},
                                          {"us", TimeUnit::kMicroseconds, kMicrosecondNs},
                                          {"ns", TimeUnit::kNanoseconds, 1}}};

/// The first text of a trace that says something: comments and blank lines skipped.
class Opening {
 public:
  explicit Opening(const std::shared_ptr<const InputFile>& file) : window_(file) {
    constexpr std::size_t kEnough = std::size_t{1} << 16;
    while (window_.unread().size() < kEnough && window_.extend()) {
    }
    text_ = window_.unread().substr(0, kEnough);
    while (true) {
      text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
      if (!text_.starts_with('#')) break;
      text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
    }
  }

  std::string_view text() const { return text_; }
  bool is_json() const { return text_.starts_with('{') || text_.starts_with('['); }
  std::string_view first_line() const {
    std::string_view line = text_.substr(0, text_.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

 private:
  TextWindow window_;
  std::string_view text_;
};

/// The keys of the first object in `text`, also when it stands in an array or is cut off.
std::vector<std::string> first_object_keys(std::string_view text) {
  std::vector<std::string> keys;
  std::size_t depth = 0;
  std::size_t i = text.find('{');
  while (i < text.size()) {
    const char c = text[i++];
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) break;
    if (c != '"') continue;
    const std::size_t start = i;
    while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    if (i >= text.size()) break;
    const std::string_view string = text.substr(start, i++ - start);
    const std::size_t after = text.find_first_not_of(" \t\r\n", i);
    if (depth == 1 && after < text.size() && text[after] == ':') keys.emplace_back(string);
  }
  return keys;
}

/// Names found less names missing: a longer full match beats a shorter one.
int match(const std::vector<std::string>& signature, const std::vector<std::string>& present) {
  int score = 0;
  for (const std::string& name : signature) {
    score += std::find(present.begin(), present.end(), name) != present.end() ? 1 : -1;
  }
  return score;
}

const TraceFormat* best_match(TraceFormat::Shape shape, const std::vector<std::string>& present) {
  const TraceFormat* best = nullptr;
  int best_score = 0;
  for (const TraceFormat& format : trace_formats()) {
    if (format.shape != shape) continue;
    for (const std::vector<std::string>& signature : format.signatures) {
      const int score = match(signature, present);
      if (score <= best_score) continue;
      best_score = score;
      best = &format;
    }
  }
  return best;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names{"auto"};
  for (const TraceFormat& format : trace_formats()) names.push_back(format.name);
  return names;
}

const TraceFormat& detect(const std::shared_ptr<const InputFile>& file) {
  const Opening opening(file);
  if (opening.text().empty()) {
    throw InputError(
        fmt::format("{}: holds no request: nothing but blank lines and comments", file->name()));
  }
  const bool json = opening.is_json();
  const TraceFormat* found =
      json ? best_match(TraceFormat::Shape::kJson, first_object_keys(opening.text()))
           : best_match(TraceFormat::Shape::kCsv, split_csv_header(opening.first_line()));
  if (found != nullptr) return *found;
  std::string names;
  for (const TraceFormat& format : trace_formats()) names += ' ' + format.name;
  throw InputError(fmt::format(
      "{}: is not a trace in a known format; it starts with {}; --trace-format accepts:{}",
      file->name(), shown(opening.first_line()), names));
}

const TraceFormat& find_format(const std::string& name) {
  for (const TraceFormat& format : trace_formats()) {
    if (format.name == name) return format;
  }
  throw unknown_name("trace format", name, format_names());
}

}  // namespace

TimeUnit parse_time_unit(std::string_view text) {
  for (const UnitName& unit : kUnits) {
    if (unit.name == text) return unit.unit;
  }
  throw unknown_name("time unit", text, {"auto", "s", "ms", "us", "ns"});
}

std::int64_t TraceOptions::unit_ns(std::int64_t format_ns) const {
  if (time_unit == TimeUnit::kAuto) return format_ns;
  return std::find_if(kUnits.begin(), kUnits.end(),
                      [this](const UnitName& unit) { return unit.unit == time_unit; })
      ->ns;
}

const std::vector<TraceFormat>& trace_formats() {
  static const std::vector<TraceFormat> formats{
      servesim_format(),     mooncake_format(),       timed_trace_format(), bailian_format(),
      azure_format(),        inference_perf_format(), burstgpt_format(),    vidur_format(),
      splitwise_format(),    sharegpt_format(),       sessions_format(),    llmservingsim_format(),
      schedule_case_format()};
  return formats;
}

const TraceFormat& choose_format(const std::shared_ptr<const InputFile>& file,
                                 const TraceOptions& options) {
  const TraceFormat& format = options.format == "auto" ? detect(file) : find_format(options.format);
  if (format.fixed_unit && options.time_unit != TimeUnit::kAuto) {
    throw InputError(fmt::format(
        "{}: --time-unit: the {} format states the unit of its times; only 'auto' is accepted",
        file->name(), format.name));
  }
  constexpr std::int64_t kLargestBlock = std::int64_t{1} << 20;
  if (options.hash_block_size < 0 || options.hash_block_size > kLargestBlock) {
    throw InputError(fmt::format("--hash-block-size: {} is not accepted; 1 to {} tokens is",
                                 options.hash_block_size, kLargestBlock));
  }
  return format;
}

}  // namespace servesim
