/// A folder for a test's files.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "text.hpp"

namespace servesim::calibrate::fixtures {

/// A new folder that goes away with the object.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "calibrate-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file into the folder and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    write_file(path_ + "/" + name, content);
    return path_ + "/" + name;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      all.push_back(entry.path().filename().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::string path_;
};

}  // namespace servesim::calibrate::fixtures
