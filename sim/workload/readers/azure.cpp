/// Azure LLM inference traces: TIMESTAMP, ContextTokens, GeneratedTokens.
/// 2023: `2023-11-16 18:17:03.9799600`, taken as UTC; 2024: `2024-05-10 00:00:00.009930+00:00`;
/// 2025 adds NumImages, which is not used. inference-perf writes the same columns.
#include <cstring>

#include "workload/csv_table.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

constexpr std::string_view kTime = "TIMESTAMP";
constexpr std::string_view kAccepted =
    "a date and time such as 2023-11-16 18:17:03.9799600 or 2024-05-10 00:00:00.009930+00:00";

bool two_digits(const char* p, int& value) {
  const int tens = p[0] - '0';
  const int ones = p[1] - '0';
  value = tens * 10 + ones;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9;
}

bool is_leap(int year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/// Days since 1970-01-01 of a date `YYYY-MM-DD`; false when there is no such day.
bool parse_date(const char* p, std::int64_t& days) {
  constexpr int kMonthDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int century = 0;
  int year = 0;
  int month = 0;
  int day = 0;
  if (!two_digits(p, century) || !two_digits(p + 2, year) || p[4] != '-' ||
      !two_digits(p + 5, month) || p[7] != '-' || !two_digits(p + 8, day)) {
    return false;
  }
  year += century * 100;
  if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1) return false;
  if (day > kMonthDays[month - 1] + (month == 2 && is_leap(year) ? 1 : 0)) return false;
  days = day - 1;
  for (int y = 1970; y < year; ++y) days += is_leap(y) ? 366 : 365;
  for (int m = 1; m < month; ++m) days += kMonthDays[m - 1] + (m == 2 && is_leap(year) ? 1 : 0);
  return true;
}

/// Parses timestamps; remembers the last date, since rows of a trace mostly share it.
class TimestampParser {
 public:
  /// Reads from `p`, with 19 characters or more up to `end`, as far as the fraction goes. Returns
  /// where it stopped, or null when this is no timestamp.
  const char* parse(const char* p, const char* end, std::int64_t& ns) {
    if (std::memcmp(p, date_, sizeof date_) != 0) {
      if (!parse_date(p, days_)) return nullptr;
      std::memcpy(date_, p, sizeof date_);
    }
    int hour = 0;
    int minute = 0;
    int second = 0;
    if ((p[10] != ' ' && p[10] != 'T') || !two_digits(p + 11, hour) || p[13] != ':' ||
        !two_digits(p + 14, minute) || p[16] != ':' || !two_digits(p + 17, second) || hour > 23 ||
        minute > 59 || second > 59) {
      return nullptr;
    }
    p += 19;
    ns = ((days_ * 24 + hour) * 60 + minute) * 60 + second;
    ns *= kSecondNs;
    return p == end || *p != '.' ? p : parse_fraction(p + 1, end, ns);
  }

 private:
  static const char* parse_fraction(const char* p, const char* end, std::int64_t& ns) {
    const char* const start = p;
    std::int64_t place = kSecondNs / 10;
    for (; p != end && *p >= '0' && *p <= '9'; ++p) {
      ns += (*p - '0') * place;
      place /= 10;
    }
    const auto digits = p - start;
    return digits >= 1 && digits <= 9 ? p : nullptr;
  }

  char date_[10] = {};
  std::int64_t days_ = 0;
};

/// Seconds east of UTC from "", "Z", "+00:00"; false for anything else.
bool parse_zone(std::string_view text, std::int64_t& seconds) {
  seconds = 0;
  if (text.empty() || text == "Z") return true;
  int hours = 0;
  int minutes = 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
      !two_digits(text.data() + 1, hours) || !two_digits(text.data() + 4, minutes) || hours > 14 ||
      minutes > 59) {
    return false;
  }
  seconds = std::int64_t{text[0] == '-' ? -60 : 60} * (hours * 60 + minutes);
  return true;
}

class AzureReader final : public TraceReader {
 public:
  explicit AzureReader(std::shared_ptr<const InputFile> file)
      : table_(std::move(file)),
        time_(table_.column(kTime)),
        input_(table_.column("ContextTokens")),
        output_(table_.column("GeneratedTokens")),
        usual_layout_(table_.header().size() == 3 && time_ == 0 && input_ == 1 && output_ == 2) {}

  bool next(Request& request) override {
    std::string_view line;
    if (!table_.next_line(line)) return false;
    clear_request(request, index_++);
    if (!usual_layout_ || !read_usual_row(line, request)) read_any_row(line, request);
    return true;
  }

 private:
  /// Three plain columns and no zone, in one pass; false when the row is anything else.
  bool read_usual_row(std::string_view line, Request& request) {
    constexpr std::size_t kShortestRow = 23;
    if (line.size() < kShortestRow) return false;
    const char* const end = line.data() + line.size();
    std::int64_t ns = 0;
    const char* p = timestamps_.parse(line.data(), end, ns);
    if (p == nullptr || p == end || *p != ',') return false;
    request.arrival = SimTime(ns);
    p = parse_digits(p + 1, end, request.input_tokens);
    if (p == nullptr || p == end || *p != ',') return false;
    return parse_digits(p + 1, end, request.output_tokens) == end;
  }

  /// Up to 9 digits; null when there is none or are more.
  static const char* parse_digits(const char* p, const char* end, std::int64_t& value) {
    const char* const start = p;
    value = 0;
    for (; p != end && *p >= '0' && *p <= '9'; ++p) value = value * 10 + (*p - '0');
    const auto digits = p - start;
    return digits >= 1 && digits <= 9 ? p : nullptr;
  }

  void read_any_row(std::string_view line, Request& request) {
    table_.split(line);
    const std::string_view text = table_[time_];
    constexpr std::size_t kShortestTime = 19;
    const char* const end = text.data() + text.size();
    std::int64_t ns = 0;
    std::int64_t zone_s = 0;
    const char* p = text.size() < kShortestTime ? nullptr : timestamps_.parse(text.data(), end, ns);
    if (p == nullptr || !parse_zone({p, static_cast<std::size_t>(end - p)}, zone_s)) {
      throw refused_value(table_.location(), kTime, text, kAccepted);
    }
    request.arrival = SimTime(ns - zone_s * kSecondNs);
    request.input_tokens = table_.tokens(input_);
    request.output_tokens = table_.tokens(output_);
  }

  CsvTable table_;
  std::size_t time_;
  std::size_t input_;
  std::size_t output_;
  bool usual_layout_;
  TimestampParser timestamps_;
  std::uint64_t index_ = 0;
};

std::unique_ptr<TraceReader> make_azure(std::shared_ptr<const InputFile> file,
                                        const TraceOptions&) {
  return std::make_unique<AzureReader>(std::move(file));
}

TraceFormat format_named(std::string name, std::string description) {
  TraceFormat format;
  format.name = std::move(name);
  format.description = std::move(description);
  format.shape = TraceFormat::Shape::kCsv;
  format.signatures = {{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}};
  format.absolute_times = true;
  format.fixed_unit = true;
  format.make = make_azure;
  return format;
}

}  // namespace

TraceFormat azure_format() {
  return format_named("azure",
                      "Azure LLM inference traces of 2023, 2024 and 2025: CSV with TIMESTAMP, "
                      "ContextTokens, GeneratedTokens.");
}

TraceFormat inference_perf_format() {
  return format_named("inference-perf",
                      "inference-perf trace replay: the columns of the Azure traces.");
}

}  // namespace servesim
