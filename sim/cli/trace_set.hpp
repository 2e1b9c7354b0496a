/// The traces of a command, each opened once however many runs use it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "workload/trace_options.hpp"
#include "workload/trace_source.hpp"

namespace servesim {

class TraceSet {
 public:
  /// The trace at `path` read with `options`. Throws InputError for everything that is wrong with
  /// it.
  const TraceSource& open(const std::string& path, const TraceOptions& options);
  /// REQUIRES: open() was called with the same arguments.
  const TraceSource& at(const std::string& path, const TraceOptions& options) const;
  /// Hash of the bytes at `path`. REQUIRES: it was opened.
  std::string content_hash_of(const std::string& path) const;

 private:
  using Key = std::tuple<std::string, std::string, TimeUnit, std::int64_t>;
  static Key key_of(const std::string& path, const TraceOptions& options) {
    return {path, options.format, options.time_unit, options.hash_block_size};
  }
  std::map<std::string, std::shared_ptr<const InputFile>> files_;
  std::map<Key, std::unique_ptr<TraceSource>> sources_;
};

/// The traces in `folder`: its regular files, by name, but for hidden ones and those whose names
/// say that they are something else (README, LICENSE, .md and the like). Throws InputError when it
/// is no folder or holds none.
std::vector<std::string> traces_in(const std::string& folder);

/// What tables and results call a trace: its file name, without folders; "stdin" for `-`.
std::string trace_label(const std::string& path);

}  // namespace servesim
