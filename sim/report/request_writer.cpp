#include "report/request_writer.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/metrics_collector.hpp"

namespace servesim {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_csv(const std::string& path) {
  if (ends_with(path, ".csv")) return true;
  if (ends_with(path, ".jsonl")) return false;
  throw InputError(fmt::format(
      "--requests {}: the name must end in .csv or .jsonl, which names the format", path));
}

std::string_view status_name(RequestStatus status) {
  switch (status) {
    case RequestStatus::kCompleted:
      return "completed";
    case RequestStatus::kRejected:
      return "rejected";
    case RequestStatus::kUnfinished:
      break;
  }
  return "unfinished";
}

void append_number(std::string& row, std::int64_t number) {
  const fmt::format_int text(number);
  row.append(text.data(), text.size());
}

/// Milliseconds of whole nanoseconds, exactly. REQUIRES: time >= 0.
void append_ms(std::string& row, SimTime time) {
  constexpr std::int64_t kNsPerMs = 1'000'000;
  append_number(row, time.ns() / kNsPerMs);
  const fmt::format_int fraction(kNsPerMs + time.ns() % kNsPerMs);  // the leading 1 keeps the zeros
  row += '.';
  row.append(fraction.data() + 1, fraction.size() - 1);
}

/// Appends `value`, or `absent` when `present` is false.
template <typename Append>
void append_or(std::string& row, bool present, std::string_view absent, Append append) {
  if (present) {
    append();
  } else {
    row += absent;
  }
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string request_id(const RequestRecord& record) {
  return record.id.empty() ? std::to_string(record.index) : std::string(record.id);
}

/// The numbers of a row that both formats share, each in its place after `separator`.
class Latencies {
 public:
  explicit Latencies(const RequestRecord& record) : record_(record) {}

  void queue(std::string& row, std::string_view absent) const {
    append_or(row, record_.scheduled >= record_.arrival, absent,
              [&] { append_ms(row, record_.scheduled - record_.arrival); });
  }
  void ttft(std::string& row, std::string_view absent) const {
    append_or(row, record_.first_token >= record_.arrival, absent,
              [&] { append_ms(row, record_.first_token - record_.arrival); });
  }
  void tpot(std::string& row, std::string_view absent) const {
    const std::int64_t gaps = output_tokens_of(record_) - 1;
    append_or(row, completed() && gaps > 0, absent, [&] {
      const std::int64_t ns = (record_.last_token - record_.first_token).ns();
      append_ms(row, SimTime((ns + gaps / 2) / gaps));  // to the nearest nanosecond
    });
  }
  void e2el(std::string& row, std::string_view absent) const {
    append_or(row, completed(), absent,
              [&] { append_ms(row, record_.last_token - record_.arrival); });
  }

 private:
  bool completed() const { return record_.status == RequestStatus::kCompleted; }
  const RequestRecord& record_;
};

}  // namespace

void append_csv_field(std::string& row, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    row += text;
    return;
  }
  row += '"';
  for (const char c : text) {
    if (c == '"') row += '"';
    row += c;
  }
  row += '"';
}

RequestWriter::RequestWriter(const std::string& path) : csv_(is_csv(path)), file_(path) {
  if (csv_) {
    file_.write(
        "index,request_id,session_id,arrival_ms,input_tokens,output_tokens,status,reason,replica,"
        "queue_ms,ttft_ms,tpot_ms,e2el_ms,prefix_hit_tokens,preemptions\n");
  }
}

void RequestWriter::on_request(const RequestRecord& record) {
  row_.clear();
  row_.reserve(256);
  if (csv_) {
    write_csv(record);
  } else {
    write_json(record);
  }
  file_.write(row_);
}

void RequestWriter::write_csv(const RequestRecord& record) {
  const Latencies latencies(record);
  const auto number = [this](std::int64_t value) {
    append_number(row_, value);
    row_ += ',';
  };
  number(static_cast<std::int64_t>(record.index));
  if (record.id.empty()) {
    append_number(row_, static_cast<std::int64_t>(record.index));
  } else {
    append_csv_field(row_, record.id);
  }
  row_ += ',';
  append_csv_field(row_, record.session);
  row_ += ',';
  append_ms(row_, record.arrival);
  row_ += ',';
  number(record.input_tokens);
  number(output_tokens_of(record));
  row_ += status_name(record.status);
  row_ += ',';
  append_csv_field(row_, record.reason);
  row_ += ',';
  append_or(row_, record.replica >= 0, "", [&] { append_number(row_, record.replica); });
  row_ += ',';
  latencies.queue(row_, "");
  row_ += ',';
  latencies.ttft(row_, "");
  row_ += ',';
  latencies.tpot(row_, "");
  row_ += ',';
  latencies.e2el(row_, "");
  row_ += ',';
  number(record.prefix_hit_tokens);
  append_number(row_, record.preemptions);
  row_ += '\n';
}

void RequestWriter::write_json(const RequestRecord& record) {
  const auto out = std::back_inserter(row_);
  const Latencies latencies(record);
  const auto string_or_null = [](std::string_view text) {
    return text.empty() ? std::string("null") : json_string(text);
  };
  fmt::format_to(out, R"({{"index":{},"request_id":{},"session_id":{},"arrival_ms":)", record.index,
                 json_string(request_id(record)), string_or_null(record.session));
  append_ms(row_, record.arrival);
  fmt::format_to(out,
                 R"(,"input_tokens":{},"output_tokens":{},"status":"{}","reason":{},"replica":)",
                 record.input_tokens, output_tokens_of(record), status_name(record.status),
                 string_or_null(record.reason));
  append_or(row_, record.replica >= 0, "null", [&] { fmt::format_to(out, "{}", record.replica); });
  row_ += R"(,"queue_ms":)";
  latencies.queue(row_, "null");
  row_ += R"(,"ttft_ms":)";
  latencies.ttft(row_, "null");
  row_ += R"(,"tpot_ms":)";
  latencies.tpot(row_, "null");
  row_ += R"(,"e2el_ms":)";
  latencies.e2el(row_, "null");
  fmt::format_to(out,
                 R"(,"prefix_hit_tokens":{},"preemptions":{}}})"
                 "\n",
                 record.prefix_hit_tokens, record.preemptions);
}

}  // namespace servesim
