#include "cli/trace_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
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

std::vector<std::string> traces_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string extension = at->path().extension().string();
    const bool other = name.starts_with('.') || name.starts_with("README") ||
                       name.starts_with("LICENSE") || name == "SOURCE" || extension == ".md" ||
                       extension == ".tar" || name.find(".tar.") != std::string::npos;
    if (!other && at->is_regular_file()) paths.push_back(at->path().string());
  }
  if (error) {
    throw InputError(fmt::format("--trace-set {}: cannot be listed: {}", folder, error.message()));
  }
  if (paths.empty()) throw InputError(fmt::format("--trace-set {}: holds no trace", folder));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string trace_label(const std::string& path) {
  return path == "-" ? "stdin" : std::filesystem::path(path).filename().string();
}

}  // namespace servesim
