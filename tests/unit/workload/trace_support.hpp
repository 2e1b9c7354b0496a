/// Helpers of the trace tests.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/trace_source.hpp"

namespace servesim::test {

/// A file in a temporary folder that is removed with it.
class TempFile {
 public:
  explicit TempFile(std::string_view content, const std::string& name = "trace");
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
};

std::vector<Request> read_all(TraceReader& reader);

/// The requests of a trace with this content.
std::vector<Request> requests_of(std::string_view content, const TraceOptions& options = {});

/// The format that is detected for this content.
std::string detected(std::string_view content);

/// What the InputError says that `action` throws; "no error" when it throws none.
std::string error_of(const std::function<void()>& action);

/// The same for reading a trace with this content; the folder of the file is left out.
std::string refusal(std::string_view content, const TraceOptions& options = {});

TraceOptions format(std::string name);

bool contains(const std::string& text, std::string_view part);

}  // namespace servesim::test
