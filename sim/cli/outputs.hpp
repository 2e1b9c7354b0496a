/// The files a command writes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/atomic_file.hpp"
#include "report/request_writer.hpp"
#include "report/timeline_writer.hpp"

namespace servesim {

/// Where results go, as given; empty: nowhere.
struct OutputPaths {
  std::string json;  ///< "-" is stdout
  std::string requests;
  std::string schedule_log;
  std::string timeline = {};
  std::string report = {};
};

/// Throws InputError when two outputs are one file, or an output is one of `inputs` or a file that
/// ships.
void check_distinct(const OutputPaths& outputs, const std::vector<std::string>& inputs);

/// The same for any outputs: pairs of a flag and a path, which may be empty. "-" is stdout for
/// those that may write there.
void check_distinct(std::vector<std::pair<std::string, std::string>> outputs,
                    const std::vector<std::string>& inputs);

/// Throws InputError for a --report that is not to be an HTML file.
void check_report_name(const std::string& path);

/// The open outputs. What is not committed leaves no file.
class Outputs {
 public:
  /// Opens every output, so that a path that cannot be written shows before a run starts.
  explicit Outputs(const OutputPaths& paths, TimelineWindow window = {});

  RequestWriter* requests() { return requests_.get(); }
  AtomicFile* schedule_log() { return schedule_log_.get(); }
  TimelineWriter* timeline() { return timeline_.get(); }
  bool report() const { return report_ != nullptr; }
  bool json_on_stdout() const { return json_on_stdout_; }

  /// Writes `json` and `report`, where asked for, and puts all files in place.
  void commit(const std::string& json, const std::string& report = "");

 private:
  bool json_on_stdout_;
  std::unique_ptr<AtomicFile> json_;
  std::unique_ptr<RequestWriter> requests_;
  std::unique_ptr<AtomicFile> schedule_log_;
  std::unique_ptr<TimelineWriter> timeline_;
  std::unique_ptr<AtomicFile> report_;
};

/// Writes `text` to stdout. A reader that has gone away is no error; a full disk is (InputError).
void write_stdout(const std::string& text);

}  // namespace servesim
