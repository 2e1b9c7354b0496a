/// Does every module include only modules below it?
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

/// Lowest first.
const std::vector<std::string> kModules{"core",   "model", "hardware",   "workload", "cost",
                                        "net",    "kv",    "sched",      "engine",   "cluster",
                                        "report", "study", "validation", "registry", "cli"};

int rank_of(const std::string& module) {
  const auto found = std::find(kModules.begin(), kModules.end(), module);
  return found == kModules.end() ? -1 : static_cast<int>(found - kModules.begin());
}

std::vector<std::string> included_modules(const fs::path& path) {
  std::vector<std::string> modules;
  std::stringstream lines(testing::read_file(path.string()));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#include \"", 0) != 0) continue;
    const std::string target = line.substr(10);
    const std::size_t slash = target.find('/');
    modules.push_back(slash == std::string::npos ? target : target.substr(0, slash));
  }
  return modules;
}

}  // namespace

TEST_CASE("a module includes only itself and modules below it") {
  const fs::path root = fs::path(SERVESIM_SOURCE_DIR) / "sim";
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".hpp") continue;
    ++files;
    const std::string module = fs::relative(entry.path(), root).begin()->string();
    INFO(entry.path().string());
    REQUIRE(rank_of(module) >= 0);
    for (const std::string& included : included_modules(entry.path())) {
      INFO("includes " << included);
      CHECK(rank_of(included) >= 0);
      CHECK(rank_of(included) <= rank_of(module));
    }
  }
  CHECK(files > 50);
}

}  // namespace servesim
