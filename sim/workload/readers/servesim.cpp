/// Our own JSONL, one request per line:
///
///   {"arrival_ms": 12.5, "input_tokens": 374, "output_tokens": 44}
///
/// arrival_ms or arrival_s   since the start of the trace; with a session_id it may be absent: the
///                           request is then closed loop and starts delay_ms (default 0) after the
///                           end of its session's previous request. The first request of a session
///                           without arrival starts together with the row before it (0 at the top).
/// input_tokens, output_tokens
/// id, session_id            strings or whole numbers; ids are unique
/// delay_ms                  only for closed-loop requests
/// priority                  lower is more urgent, default 0
/// hash_ids, hash_block      token p of the prompt is the token hash_ids[p / hash_block]; the
/// number
///                           of ids is floor or ceil of input_tokens / hash_block
///
/// Any other key is an error.
#include <algorithm>

#include "workload/hash_blocks.hpp"
#include "workload/id_set.hpp"
#include "workload/json_fields.hpp"
#include "workload/json_stream.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

enum Field : std::size_t {
  kArrivalMs,
  kArrivalS,
  kInput,
  kOutput,
  kId,
  kSessionId,
  kDelayMs,
  kPriority,
  kHashIds,
  kHashBlock,
};

class ServesimReader final : public TraceReader {
 public:
  ServesimReader(std::shared_ptr<const InputFile> file, const TraceOptions& options)
      : rows_(std::move(file)),
        fields_({"arrival_ms", "arrival_s", "input_tokens", "output_tokens", "id", "session_id",
                 "delay_ms", "priority", "hash_ids", "hash_block"},
                JsonFields::Unknown::kRefused),
        block_(options.hash_block_size) {}

  bool next(Request& request) override {
    simdjson::dom::element row;
    if (!rows_.next(row)) return false;
    clear_request(request, index_++);
    fields_.load(row, rows_.location());
    request.input_tokens = fields_.tokens(kInput);
    request.output_tokens = fields_.tokens(kOutput);
    take_names(request);
    take_times(request);
    if (fields_.has(kPriority)) {
      request.priority = static_cast<std::int32_t>(
          fields_.whole(kPriority, INT32_MIN, INT32_MAX, "a whole number of 32 bits"));
    }
    if (fields_.has(kHashIds)) take_hash_ids(request);
    return true;
  }

 private:
  void take_names(Request& request) {
    if (fields_.has(kSessionId)) fields_.text(kSessionId, request.session);
    if (!fields_.has(kId)) return;
    fields_.text(kId, request.id);
    if (!ids_.insert(request.id)) {
      throw refused_value(rows_.location(), "id", request.id, "an id not used before");
    }
  }

  void take_times(Request& request) {
    const std::size_t time = fields_.either(kArrivalMs, kArrivalS);
    const bool new_session = fields_.has(kSessionId) && sessions_.insert(request.session);
    if (fields_.has(time) || !fields_.has(kSessionId)) {
      if (fields_.has(kDelayMs)) {
        throw fields_.error(kDelayMs, "is not accepted beside an arrival or without a session_id");
      }
      request.arrival = fields_.time(time, time == kArrivalMs ? kMillisecondNs : kSecondNs);
      latest_ = std::max(latest_, request.arrival);
      return;
    }
    if (fields_.has(kDelayMs)) request.delay = fields_.time(kDelayMs, kMillisecondNs);
    request.closed_loop = !new_session;
    if (new_session) request.arrival = latest_;
  }

  void take_hash_ids(Request& request) {
    constexpr std::int64_t kLargestBlock = std::int64_t{1} << 20;
    request.hash_block = block_ > 0 ? block_
                                    : fields_.whole(kHashBlock, 1, kLargestBlock,
                                                    "a whole number from 1 to 1048576");
    fields_.hash_ids(kHashIds, request.hash_ids);
    check_hash_ids(request, rows_.location());
  }

  JsonLines rows_;
  JsonFields fields_;
  std::int64_t block_;
  SimTime latest_;
  IdSet sessions_;
  IdSet ids_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat servesim_format() {
  TraceFormat format;
  format.name = "servesim";
  format.description =
      "servesim's own: JSONL with arrival_ms or arrival_s, input_tokens, output_tokens, perhaps "
      "id, "
      "session_id, delay_ms, priority, hash_ids and hash_block.";
  format.shape = TraceFormat::Shape::kJson;
  format.signatures = {{"arrival_ms", "input_tokens", "output_tokens"},
                       {"arrival_s", "input_tokens", "output_tokens"},
                       {"session_id", "input_tokens", "output_tokens"}};
  format.fixed_unit = true;
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<ServesimReader>(std::move(file), options);
  };
  return format;
}

}  // namespace servesim
