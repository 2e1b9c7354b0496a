#include "cli/trace_set.hpp"

#include <filesystem>

#include "core/hash.hpp"

namespace servesim {

const TraceSource& TraceSet::open(const std::string& path, const TraceOptions& options) {
  std::unique_ptr<TraceSource>& source = sources_[key_of(path, options)];
  if (!source) {
    std::shared_ptr<const InputFile>& file = files_[path];
    if (!file) file = InputFile::open(path);
    source = std::make_unique<TraceSource>(file, options);
  }
  return *source;
}

const TraceSource& TraceSet::at(const std::string& path, const TraceOptions& options) const {
  return *sources_.at(key_of(path, options));
}

std::string TraceSet::content_hash_of(const std::string& path) const {
  return content_hash(files_.at(path)->bytes());
}

std::string trace_label(const std::string& path) {
  return path == "-" ? "stdin" : std::filesystem::path(path).filename().string();
}

}  // namespace servesim
