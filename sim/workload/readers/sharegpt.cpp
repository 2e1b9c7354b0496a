/// ShareGPT: a JSON array of {id, conversations: [{from, value}, ...]}. As `vllm bench` does, turn
/// 0 is the prompt and turn 1 the answer, later turns are left out, and so are conversations of
/// fewer than two turns. Without a tokeniser the lengths are estimates: a token per four
/// characters, rounded up, unless the conversation states input_tokens and output_tokens. All
/// arrive at 0.
#include <algorithm>

#include "workload/json_fields.hpp"
#include "workload/json_stream.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

enum Field : std::size_t { kId, kConversations, kInput, kOutput };
enum TurnField : std::size_t { kValue };

std::int64_t estimated_tokens(std::string_view text) {
  constexpr std::int64_t kCharactersPerToken = 4;
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not inside a UTF-8 sequence
  });
  return (characters + kCharactersPerToken - 1) / kCharactersPerToken;
}

class ShareGptReader final : public TraceReader {
 public:
  explicit ShareGptReader(std::shared_ptr<const InputFile> file)
      : conversations_(std::move(file)),
        fields_({"id", "conversations", "input_tokens", "output_tokens"},
                JsonFields::Unknown::kAllowed),
        turn_({"value"}, JsonFields::Unknown::kAllowed) {}

  bool next(Request& request) override {
    simdjson::dom::element conversation;
    while (conversations_.next(conversation)) {
      fields_.load(conversation, conversations_.location());
      const simdjson::dom::array turns = fields_.array(kConversations);
      if (turns.size() < 2) continue;
      clear_request(request, index_++);
      if (fields_.has(kId)) fields_.text(kId, request.id);
      request.input_tokens = length(kInput, turns, 0);
      request.output_tokens = length(kOutput, turns, 1);
      return true;
    }
    return false;
  }

 private:
  std::int64_t length(std::size_t field, const simdjson::dom::array& turns, std::size_t turn) {
    if (fields_.has(field)) return fields_.tokens(field);
    const std::string prefix = "conversations[" + std::to_string(turn) + "].";
    simdjson::dom::element element;
    if (turns.at(turn).get(element) != simdjson::SUCCESS) return 0;
    turn_.load(element, conversations_.location(), prefix);
    turn_.text(kValue, text_);
    return estimated_tokens(text_);
  }

  JsonStream conversations_;
  JsonFields fields_;
  JsonFields turn_;
  std::string text_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat sharegpt_format() {
  TraceFormat format;
  format.name = "sharegpt";
  format.description =
      "ShareGPT: a JSON array of conversations; turns 0 and 1 count, a token per four characters.";
  format.shape = TraceFormat::Shape::kJson;
  format.signatures = {{"conversations"}, {"id", "conversations"}};
  format.fixed_unit = true;
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions&) -> std::unique_ptr<TraceReader> {
    return std::make_unique<ShareGptReader>(std::move(file));
  };
  return format;
}

}  // namespace servesim
