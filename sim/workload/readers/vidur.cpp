/// Vidur and etalon: arrived_at (seconds), num_prefill_tokens, num_decode_tokens. Length-only files
/// have no arrived_at; all their requests arrive at 0.
#include "workload/csv_table.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

class VidurReader final : public TraceReader {
 public:
  VidurReader(std::shared_ptr<const InputFile> file, const TraceOptions& options)
      : table_(std::move(file)),
        time_(table_.optional_column("arrived_at")),
        input_(table_.column("num_prefill_tokens")),
        output_(table_.column("num_decode_tokens")),
        unit_ns_(options.unit_ns(kSecondNs)) {}

  bool next(Request& request) override {
    if (!table_.next()) return false;
    clear_request(request, index_++);
    if (time_) request.arrival = table_.time(*time_, unit_ns_);
    request.input_tokens = table_.tokens(input_);
    request.output_tokens = table_.tokens(output_);
    return true;
  }

 private:
  CsvTable table_;
  std::optional<std::size_t> time_;
  std::size_t input_;
  std::size_t output_;
  std::int64_t unit_ns_;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat vidur_format() {
  TraceFormat format;
  format.name = "vidur";
  format.description =
      "Vidur and etalon: CSV with arrived_at (s; may be absent: all at 0), num_prefill_tokens, "
      "num_decode_tokens.";
  format.signatures = {{"num_prefill_tokens", "num_decode_tokens"}};
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<VidurReader>(std::move(file), options);
  };
  return format;
}

}  // namespace servesim
