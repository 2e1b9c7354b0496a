/// Per-request records as CSV or JSON lines (--requests).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/observer.hpp"
#include "report/atomic_file.hpp"

namespace servesim {

/// Appends a field of a CSV row, quoted where RFC 4180 wants it: a comma, a quote or a line end.
void append_csv_field(std::string& row, std::string_view text);

/// Writes one row per request, in the order in which their fates become known. Times are in
/// milliseconds; what did not happen is an empty field (CSV) or null (JSON). The columns are
/// described in docs/metrics.md.
class RequestWriter : public Observer {
 public:
  /// The format follows the name: .csv, or .jsonl for JSON lines. Throws InputError for any other
  /// name and for a path that cannot be written.
  explicit RequestWriter(const std::string& path);

  void on_request(const RequestRecord& record) override;
  void close() { file_.close(); }
  /// Puts the finished file in place.
  void commit() { file_.commit(); }

 private:
  void write_csv(const RequestRecord& record);
  void write_json(const RequestRecord& record);

  bool csv_;
  AtomicFile file_;
  std::string row_;
};

}  // namespace servesim
