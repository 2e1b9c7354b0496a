/// Does every command that the documents show run?
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;
using testing::read_file;

/// The commands in the ```sh blocks of a document that run the program; a line that ends in a
/// backslash goes on.
std::vector<std::string> commands_in(const std::string& document) {
  std::vector<std::string> commands;
  std::stringstream lines(document);
  bool in_block = false;
  std::string pending;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) {
      in_block = line == "```sh";
      continue;
    }
    if (!in_block) continue;
    pending += line;
    if (!pending.empty() && pending.back() == '\\') {
      pending.back() = ' ';
      continue;
    }
    if (pending.rfind("./run simulate", 0) == 0) pending = pending.substr(6);
    if (pending.rfind("simulate", 0) == 0) commands.push_back(pending);
    pending.clear();
  }
  return commands;
}

std::vector<fs::path> documents() {
  const fs::path root = SERVESIM_SOURCE_DIR;
  std::vector<fs::path> paths{root / "README.md", root / "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TEST_CASE("every command in the documents runs") {
  const testing::TemporaryFolder folder;
  for (const char* name : {"workloads", "models"}) {
    fs::create_directory_symlink(fs::path(SERVESIM_SOURCE_DIR) / name,
                                 fs::path(folder.path()) / name);
  }
  std::size_t count = 0;
  for (const fs::path& path : documents()) {
    for (const std::string& command : commands_in(read_file(path.string()))) {
      INFO(path.filename().string() << ": " << command);
      const testing::ProcessResult result = testing::shell(command, folder.path());
      INFO(result.err);
      CHECK(result.exit_code == 0);
      ++count;
    }
  }
  CHECK(count >= 10);
}

}  // namespace servesim
