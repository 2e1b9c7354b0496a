/// Traces of scheduler cases: JSONL with id, arrival_us, prompt_len, output_len, perhaps priority,
/// hash_ids and hash_block (default: the block size of vLLM, 16).
#include "workload/hash_blocks.hpp"
#include "workload/id_set.hpp"
#include "workload/json_fields.hpp"
#include "workload/json_stream.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

enum Field : std::size_t { kId, kArrival, kInput, kOutput, kPriority, kHashIds, kHashBlock };

class ScheduleCaseReader final : public TraceReader {
 public:
  ScheduleCaseReader(std::shared_ptr<const InputFile> file, const TraceOptions& options)
      : rows_(std::move(file)),
        fields_(
            {"id", "arrival_us", "prompt_len", "output_len", "priority", "hash_ids", "hash_block"},
            JsonFields::Unknown::kAllowed),
        block_(options.hash_block_size) {}

  bool next(Request& request) override {
    simdjson::dom::element row;
    if (!rows_.next(row)) return false;
    clear_request(request, index_++);
    fields_.load(row, rows_.location());
    fields_.text(kId, request.id);
    if (!ids_.insert(request.id)) {
      throw refused_value(rows_.location(), "id", request.id, "an id not used before");
    }
    request.arrival = fields_.time(kArrival, kMicrosecondNs);
    request.input_tokens = fields_.tokens(kInput);
    request.output_tokens = fields_.tokens(kOutput);
    if (fields_.has(kPriority)) {
      request.priority = static_cast<std::int32_t>(
          fields_.whole(kPriority, INT32_MIN, INT32_MAX, "a whole number of 32 bits"));
    }
    if (fields_.has(kHashIds)) take_hash_ids(request);
    return true;
  }

 private:
  void take_hash_ids(Request& request) {
    constexpr std::int64_t kLargestBlock = std::int64_t{1} << 20;
    constexpr std::int64_t kDefaultBlock = 16;
    request.hash_block = kDefaultBlock;
    if (block_ > 0) {
      request.hash_block = block_;
    } else if (fields_.has(kHashBlock)) {
      request.hash_block =
          fields_.whole(kHashBlock, 1, kLargestBlock, "a whole number from 1 to 1048576");
    }
    fields_.hash_ids(kHashIds, request.hash_ids);
    check_hash_ids(request, rows_.location());
  }

  JsonLines rows_;
  JsonFields fields_;
  std::int64_t block_;
  IdSet ids_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat schedule_case_format() {
  TraceFormat format;
  format.name = "schedule-case";
  format.description =
      "Scheduler test cases: JSONL with id, arrival_us, prompt_len, output_len, perhaps priority, "
      "hash_ids, hash_block.";
  format.shape = TraceFormat::Shape::kJson;
  format.signatures = {{"arrival_us", "prompt_len", "output_len"}};
  format.fixed_unit = true;
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<ScheduleCaseReader>(std::move(file), options);
  };
  return format;
}

}  // namespace servesim
