/// splitwise-sim: request_id, request_type (2: LLM), application_id, arrival_timestamp (seconds),
/// batch_size (1), prompt_size, token_size.
#include "workload/csv_table.hpp"
#include "workload/id_set.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

class SplitwiseReader final : public TraceReader {
 public:
  SplitwiseReader(std::shared_ptr<const InputFile> file, const TraceOptions& options)
      : table_(std::move(file)),
        id_(table_.optional_column("request_id")),
        type_(table_.optional_column("request_type")),
        batch_(table_.optional_column("batch_size")),
        time_(table_.column("arrival_timestamp")),
        input_(table_.column("prompt_size")),
        output_(table_.column("token_size")),
        unit_ns_(options.unit_ns(kSecondNs)) {}

  bool next(Request& request) override {
    if (!table_.next()) return false;
    clear_request(request, index_++);
    expect(type_, 2, "2 (an LLM request)");
    expect(batch_, 1, "1 (each row is one request)");
    if (id_) take_id(request);
    request.arrival = table_.time(time_, unit_ns_);
    request.input_tokens = table_.tokens(input_);
    request.output_tokens = table_.tokens(output_);
    return true;
  }

 private:
  void expect(std::optional<std::size_t> column, std::int64_t value, std::string_view accepted) {
    if (!column || table_.tokens(*column) == value) return;
    throw refused_value(table_.location(), table_.header()[*column], table_[*column], accepted);
  }

  void take_id(Request& request) {
    request.id.assign(table_[*id_]);
    if (!ids_.insert(request.id)) {
      throw refused_value(table_.location(), "request_id", request.id, "an id not used before");
    }
  }

  CsvTable table_;
  std::optional<std::size_t> id_;
  std::optional<std::size_t> type_;
  std::optional<std::size_t> batch_;
  std::size_t time_;
  std::size_t input_;
  std::size_t output_;
  std::int64_t unit_ns_;
  std::uint64_t index_ = 0;
  IdSet ids_;
};

}  // namespace

TraceFormat splitwise_format() {
  TraceFormat format;
  format.name = "splitwise";
  format.description =
      "splitwise-sim: CSV with arrival_timestamp (s), prompt_size, token_size of LLM requests.";
  format.signatures = {{"arrival_timestamp", "prompt_size", "token_size"}};
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<SplitwiseReader>(std::move(file), options);
  };
  return format;
}

}  // namespace servesim
