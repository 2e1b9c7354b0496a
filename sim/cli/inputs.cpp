#include "cli/inputs.hpp"

#include <algorithm>
#include <filesystem>

#include "core/data_dir.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

bool names_file(const Axis& axis) {
  return axis.value_name.find("FILE") != std::string::npos;
}

std::string file_behind(const std::string& value) {
  if (value == "-") return "/dev/stdin";
  std::error_code error;
  return fs::is_directory(value, error) ? value + "/config.json" : value;  // a model's folder
}

/// The files in "KEY=VALUE,...", the settings of a pool.
void add_pool_files(std::string_view settings, std::vector<std::string>& files) {
  while (!settings.empty()) {
    const std::string_view part = settings.substr(0, settings.find(','));
    settings.remove_prefix(std::min(part.size() + 1, settings.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const auto axis = std::find_if(axes().begin(), axes().end(), [&](const Axis& candidate) {
      return candidate.name == part.substr(0, equals);
    });
    if (axis == axes().end() || !names_file(*axis)) continue;
    files.push_back(file_behind(std::string(part.substr(equals + 1))));
  }
}

}  // namespace

std::vector<std::string> input_files(const FlagSet& flags, const std::vector<AxisValues>& given) {
  std::vector<std::string> files;
  for (const char* name : {"engine-config", "space", "spec"}) {
    const std::vector<std::string>& values = flags.values(name);
    files.insert(files.end(), values.begin(), values.end());
  }
  for (const auto& [axis, values] : given) {
    for (const std::string& value : values) {
      if (names_file(*axis)) files.push_back(file_behind(value));
      if (axis->name == "prefill" || axis->name == "decode") add_pool_files(value, files);
    }
  }
  return files;
}

bool is_shipped_data(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) return false;
  for (const char* folder : {"models", "workloads/specs"}) {
    const fs::path data = fs::weakly_canonical(fs::path(data_dir()) / folder, error);
    const auto [end, rest] = std::mismatch(data.begin(), data.end(), file.begin(), file.end());
    if (end == data.end()) return true;
  }
  return false;
}

}  // namespace servesim
