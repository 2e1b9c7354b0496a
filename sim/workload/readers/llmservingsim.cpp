/// LLMServingSim JSONL. A flat row is {input_toks, output_toks, arrival_time_ns}. A session row is
/// {session_id, arrival_time_ns, sub_requests: [{input_toks, output_toks, tool_duration_ns}]}: its
/// sub-requests run one after another, each tool_duration_ns after the end of the one before has
/// passed. Token ids are not used.
#include <fmt/format.h>

#include "workload/id_set.hpp"
#include "workload/json_fields.hpp"
#include "workload/json_stream.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

enum Field : std::size_t { kArrival, kInput, kOutput, kSessionId, kSubRequests };
enum SubField : std::size_t { kSubInput, kSubOutput, kToolDuration };

class LlmServingSimReader final : public TraceReader {
 public:
  explicit LlmServingSimReader(std::shared_ptr<const InputFile> file)
      : rows_(std::move(file)),
        fields_({"arrival_time_ns", "input_toks", "output_toks", "session_id", "sub_requests"},
                JsonFields::Unknown::kAllowed),
        sub_({"input_toks", "output_toks", "tool_duration_ns"}, JsonFields::Unknown::kAllowed) {}

  bool next(Request& request) override {
    while (position_ == session_.size()) {
      simdjson::dom::element row;
      if (!rows_.next(row)) return false;
      fields_.load(row, rows_.location());
      if (!fields_.has(kSubRequests)) return read_flat(request);
      read_session();
    }
    request = session_[position_++];
    request.index = index_++;
    return true;
  }

 private:
  bool read_flat(Request& request) {
    clear_request(request, index_++);
    request.arrival = fields_.time(kArrival, 1);
    request.input_tokens = fields_.tokens(kInput);
    request.output_tokens = fields_.tokens(kOutput);
    return true;
  }

  void read_session() {
    session_.clear();
    position_ = 0;
    Request request;
    fields_.text(kSessionId, request.session);
    if (!sessions_.insert(request.session)) {
      throw refused_value(rows_.location(), "session_id", request.session, "an id not used before");
    }
    request.arrival = fields_.time(kArrival, 1);
    for (const simdjson::dom::element element : fields_.array(kSubRequests)) {
      sub_.load(element, rows_.location(), fmt::format("sub_requests[{}].", session_.size()));
      request.input_tokens = sub_.tokens(kSubInput);
      request.output_tokens = sub_.tokens(kSubOutput);
      session_.push_back(request);
      request.closed_loop = true;
      request.arrival = SimTime();
      request.delay = sub_.has(kToolDuration) ? sub_.time(kToolDuration, 1) : SimTime();
    }
  }

  JsonLines rows_;
  JsonFields fields_;
  JsonFields sub_;
  std::vector<Request> session_;
  std::size_t position_ = 0;
  IdSet sessions_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat llmservingsim_format() {
  TraceFormat format;
  format.name = "llmservingsim";
  format.description =
      "LLMServingSim: JSONL with input_toks, output_toks, arrival_time_ns, or sessions with "
      "sub_requests.";
  format.shape = TraceFormat::Shape::kJson;
  format.signatures = {{"input_toks", "output_toks", "arrival_time_ns"},
                       {"session_id", "arrival_time_ns", "sub_requests"}};
  format.fixed_unit = true;
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions&) -> std::unique_ptr<TraceReader> {
    return std::make_unique<LlmServingSimReader>(std::move(file));
  };
  return format;
}

}  // namespace servesim
