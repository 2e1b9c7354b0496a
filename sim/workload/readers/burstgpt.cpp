/// BurstGPT: Timestamp (seconds from the midnight of day 1), Model, Request tokens, Response tokens
/// and more. One version of the file has Session ID and Elapsed time as columns 2 and 3, so columns
/// are found by name. Rows with 0 response tokens (failed requests) are kept.
#include "workload/csv_table.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

class BurstGptReader final : public TraceReader {
 public:
  BurstGptReader(std::shared_ptr<const InputFile> file, const TraceOptions& options)
      : table_(std::move(file)),
        time_(table_.column("Timestamp")),
        input_(table_.column("Request tokens")),
        output_(table_.column("Response tokens")),
        session_(table_.optional_column("Session ID")),
        unit_ns_(options.unit_ns(kSecondNs)) {}

  bool next(Request& request) override {
    if (!table_.next()) return false;
    clear_request(request, index_++);
    request.arrival = table_.time(time_, unit_ns_);
    request.input_tokens = table_.tokens(input_);
    request.output_tokens = table_.tokens(output_);
    if (session_) request.session.assign(table_[*session_]);
    return true;
  }

 private:
  CsvTable table_;
  std::size_t time_;
  std::size_t input_;
  std::size_t output_;
  std::optional<std::size_t> session_;
  std::int64_t unit_ns_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat burstgpt_format() {
  TraceFormat format;
  format.name = "burstgpt";
  format.description =
      "BurstGPT: CSV with Timestamp (s), Request tokens, Response tokens, perhaps Session ID.";
  format.signatures = {{"Timestamp", "Request tokens", "Response tokens"}};
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<BurstGptReader>(std::move(file), options);
  };
  return format;
}

}  // namespace servesim
