/// Bailian (Qwen) traces: JSONL with chat_id, parent_chat_id (-1: none), timestamp (seconds),
/// input_length, output_length, hash_ids (blocks of 16). The turns of one chain of chats share a
/// session, named by the chain's first chat; each turn keeps its own arrival time.
#include <fmt/format.h>

#include <unordered_map>

#include "workload/hash_blocks.hpp"
#include "workload/json_fields.hpp"
#include "workload/json_stream.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

enum Field : std::size_t { kChatId, kParent, kTimestamp, kInput, kOutput, kHashIds };

class BailianReader final : public TraceReader {
 public:
  BailianReader(std::shared_ptr<const InputFile> file, const TraceOptions& options)
      : rows_(std::move(file)),
        fields_(
            {"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "hash_ids"},
            JsonFields::Unknown::kAllowed),
        unit_ns_(options.unit_ns(kSecondNs)),
        block_(options.block_or(16)) {}

  bool next(Request& request) override {
    simdjson::dom::element row;
    if (!rows_.next(row)) return false;
    clear_request(request, index_++);
    fields_.load(row, rows_.location());
    request.arrival = fields_.time(kTimestamp, unit_ns_);
    request.input_tokens = fields_.tokens(kInput);
    request.output_tokens = fields_.tokens(kOutput);
    take_session(request);
    if (fields_.has(kHashIds)) {
      request.hash_block = block_;
      fields_.hash_ids(kHashIds, request.hash_ids);
      check_hash_ids(request, rows_.location());
    }
    return true;
  }

 private:
  /// A parent that is not in the file (the traces are samples) stands for the chain itself.
  void take_session(Request& request) {
    const std::int64_t chat = whole(kChatId);
    const std::int64_t parent = fields_.has(kParent) ? whole(kParent) : -1;
    const auto known = chain_of_.find(parent);
    const std::int64_t chain = parent < 0                 ? chat
                               : known != chain_of_.end() ? known->second
                                                          : parent;
    if (!chain_of_.emplace(chat, chain).second) {
      throw refused_value(rows_.location(), "chat_id", fmt::to_string(chat),
                          "an id not used before");
    }
    request.id = fmt::to_string(chat);
    request.session = fmt::to_string(chain);
  }

  std::int64_t whole(std::size_t field) const {
    return fields_.whole(field, -1, INT64_MAX, "a whole number from -1");
  }

  JsonLines rows_;
  JsonFields fields_;
  std::int64_t unit_ns_;
  std::int64_t block_;
  std::unordered_map<std::int64_t, std::int64_t> chain_of_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat bailian_format() {
  TraceFormat format;
  format.name = "bailian";
  format.description =
      "Alibaba Bailian (Qwen) traces: JSONL with chat_id, parent_chat_id, timestamp (s), "
      "input_length, output_length, hash_ids (blocks of 16).";
  format.shape = TraceFormat::Shape::kJson;
  format.signatures = {{"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length"}};
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<BailianReader>(std::move(file), options);
  };
  return format;
}

}  // namespace servesim
