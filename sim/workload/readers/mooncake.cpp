/// Mooncake JSONL: timestamp (ms), input_length, output_length, hash_ids (blocks of 512). Dynamo,
/// AIPerf and genai-perf add session_id, delay (ms), priority, request_id, and write input_tokens,
/// output_tokens, delay_ms, created_time for the same. `timed_trace` (vllm bench) has the same
/// names with seconds and blocks of 16; the two cannot be told apart by content, except by the
/// number of hash ids.
///
/// A row without timestamp needs a session_id. It is closed loop: it starts `delay` (0 when absent)
/// after the end of its session's previous request. The first request of such a session starts
/// where it stands in the file: together with the row before it.
#include <algorithm>

#include "workload/hash_blocks.hpp"
#include "workload/id_set.hpp"
#include "workload/json_fields.hpp"
#include "workload/json_stream.hpp"
#include "workload/readers/plain_row.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

enum Field : std::size_t {
  kTimestamp,
  kCreatedTime,
  kInputLength,
  kInputTokens,
  kOutputLength,
  kOutputTokens,
  kHashIds,
  kSessionId,
  kDelay,
  kDelayMs,
  kPriority,
  kRequestId,
};

class MooncakeReader final : public TraceReader {
 public:
  MooncakeReader(std::shared_ptr<const InputFile> file, std::int64_t unit_ns, std::int64_t block)
      : rows_(std::move(file)),
        fields_({"timestamp", "created_time", "input_length", "input_tokens", "output_length",
                 "output_tokens", "hash_ids", "session_id", "delay", "delay_ms", "priority",
                 "request_id"},
                JsonFields::Unknown::kAllowed),
        unit_ns_(unit_ns),
        block_(block) {}

  bool next(Request& request) override {
    std::string_view line;
    if (!rows_.next_line(line)) return false;
    clear_request(request, index_++);
    if (take_plain_row(line, request)) return true;
    request.hash_ids.clear();
    fields_.load(rows_.parse(line), rows_.location());
    request.input_tokens = fields_.tokens(fields_.either(kInputLength, kInputTokens));
    request.output_tokens = fields_.tokens(fields_.either(kOutputLength, kOutputTokens));
    take_names(request);
    take_times(request);
    if (fields_.has(kPriority)) {
      request.priority = static_cast<std::int32_t>(
          fields_.whole(kPriority, INT32_MIN, INT32_MAX, "a whole number of 32 bits"));
    }
    if (fields_.has(kHashIds)) {
      request.hash_block = block_;
      fields_.hash_ids(kHashIds, request.hash_ids);
      check_hash_ids(request, rows_.location());
    }
    return true;
  }

 private:
  /// The quick way for rows of nothing but whole numbers in range.
  bool take_plain_row(std::string_view line, Request& request) {
    PlainRow row;
    if (!read_plain_row(line, row, request.hash_ids)) return false;
    if (row.input_length > kMostTokens || row.output_length > kMostTokens) return false;
    if (row.timestamp > static_cast<std::int64_t>(kLatestSeconds * 1e9) / unit_ns_) return false;
    request.arrival = SimTime(row.timestamp * unit_ns_);
    latest_ = std::max(latest_, request.arrival);
    request.input_tokens = row.input_length;
    request.output_tokens = row.output_length;
    if (row.has_hash_ids) {
      request.hash_block = block_;
      check_hash_ids(request, rows_.location());
    }
    return true;
  }

  void take_names(Request& request) {
    if (fields_.has(kSessionId)) fields_.text(kSessionId, request.session);
    if (!fields_.has(kRequestId)) return;
    fields_.text(kRequestId, request.id);
    if (!ids_.insert(request.id)) {
      throw refused_value(rows_.location(), "request_id", request.id, "an id not used before");
    }
  }

  void take_times(Request& request) {
    const std::size_t time = fields_.either(kTimestamp, kCreatedTime);
    const bool new_session = fields_.has(kSessionId) && sessions_.insert(request.session);
    if (fields_.has(time) || !fields_.has(kSessionId)) {
      request.arrival = fields_.time(time, unit_ns_);
      latest_ = std::max(latest_, request.arrival);
      return;
    }
    const std::size_t delay = fields_.either(kDelay, kDelayMs);
    if (fields_.has(delay))
      request.delay = fields_.time(delay, delay == kDelay ? unit_ns_ : kMillisecondNs);
    request.closed_loop = !new_session;
    if (new_session) request.arrival = latest_;
  }

  JsonLines rows_;
  JsonFields fields_;
  std::int64_t unit_ns_;
  std::int64_t block_;
  SimTime latest_;
  IdSet sessions_;
  IdSet ids_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat mooncake_format() {
  TraceFormat format;
  format.name = "mooncake";
  format.description =
      "Mooncake, AIPerf, genai-perf and Dynamo replay: JSONL with timestamp (ms), input_length, "
      "output_length, hash_ids (blocks of 512), perhaps session_id and delay (ms).";
  format.shape = TraceFormat::Shape::kJson;
  format.signatures = {{"timestamp", "input_length", "output_length"},
                       {"timestamp", "input_tokens", "output_tokens"},
                       {"session_id", "input_length", "output_length"}};
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<MooncakeReader>(std::move(file), options.unit_ns(kMillisecondNs),
                                            options.block_or(512));
  };
  return format;
}

TraceFormat timed_trace_format() {
  TraceFormat format;
  format.name = "timed_trace";
  format.description =
      "vllm bench timed_trace: the JSONL names of Mooncake, with seconds and blocks of 16.";
  format.shape = TraceFormat::Shape::kJson;
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<MooncakeReader>(std::move(file), options.unit_ns(kSecondNs),
                                            options.block_or(16));
  };
  return format;
}

}  // namespace servesim
