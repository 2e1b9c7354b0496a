/// The trace formats that can be named, and how the content of a file tells its format.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workload/input_file.hpp"
#include "workload/trace_options.hpp"
#include "workload/trace_reader.hpp"

namespace servesim {

/// One format. Its reader yields requests in file order with the trace's own times, which may
/// decrease; TraceSource puts that right.
struct TraceFormat {
  enum class Shape { kCsv, kJson };

  std::string name;
  std::string description;  ///< one sentence
  Shape shape = Shape::kCsv;
  /// Each is a set of column or key names that marks the format; none: only chosen by name.
  std::vector<std::vector<std::string>> signatures;
  bool absolute_times = false;  ///< times are dates, of which only differences matter
  bool fixed_unit = false;      ///< the field names state the unit, so that none can be chosen
  std::unique_ptr<TraceReader> (*make)(std::shared_ptr<const InputFile> file,
                                       const TraceOptions& options) = nullptr;
};

/// All formats; among equal matches the earlier one is taken.
const std::vector<TraceFormat>& trace_formats();

/// The format that `options` names or the content of `file` shows. Throws InputError for an unknown
/// name, an unrecognisable content, or options that the format cannot honour.
const TraceFormat& choose_format(const std::shared_ptr<const InputFile>& file,
                                 const TraceOptions& options);

}  // namespace servesim
