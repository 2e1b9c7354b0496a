/// Runs the program as a user would and says what came of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace servesim::testing {

struct ProcessResult {
  int exit_code = -1;  ///< 128 + N when signal N ended it
  std::string out, err;

  std::size_t error_lines() const;
};

/// The program: $SERVESIM_BINARY, else the one built with the tests.
std::string binary();

/// Runs the program with `arguments` in `folder` (the current one when empty); `input` is its
/// stdin.
ProcessResult simulate(const std::vector<std::string>& arguments, const std::string& folder = "",
                       const std::string& input = "");
/// Runs a shell command line in which `simulate` is the program.
ProcessResult shell(const std::string& command, const std::string& folder);

/// A new folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Writes `content` to `name` in the folder and returns its path.
  std::string write(const std::string& name, const std::string& content) const;
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

}  // namespace servesim::testing
