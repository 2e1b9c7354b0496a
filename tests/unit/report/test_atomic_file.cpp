/// Do outputs appear whole or not at all?
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

/// An empty folder that goes away with the test.
struct Folder {
  Folder() : path(fs::temp_directory_path() / "servesim_atomic_file_test") {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  fs::path path;
};

std::string read_all(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("what a killed process of the same number has left is no hindrance, and is left alone") {
  const Folder folder;
  const fs::path path = folder.path / "out.json";
  const fs::path leftover = path.string() + "." + std::to_string(getpid()) + ".0.tmp";
  std::ofstream(leftover) << "old";
  AtomicFile file(path);
  file.write("new");
  file.commit();
  CHECK(read_all(path) == "new");
  CHECK(read_all(leftover) == "old");
  CHECK(folder.files() == 2);
}

TEST_CASE("a file appears on commit") {
  const Folder folder;
  const fs::path path = folder.path / "out.json";
  {
    AtomicFile file(path.string());
    file.write("whole");
    CHECK_FALSE(fs::exists(path));
    file.commit();
  }
  CHECK(read_all(path) == "whole");
  CHECK(folder.files() == 1);
}

TEST_CASE("without commit nothing is left, and what was there stays") {
  const Folder folder;
  const fs::path path = folder.path / "out.json";
  std::ofstream(path) << "old";
  {
    AtomicFile file(path.string());
    file.write("half");
  }
  CHECK(read_all(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a path that cannot be written is refused at once") {
  const Folder folder;
  CHECK_THROWS_AS(AtomicFile((folder.path / "no" / "such" / "out").string()), InputError);
  CHECK_THROWS_AS(AtomicFile(folder.path.string()), InputError);
  CHECK_THROWS_AS(AtomicFile(""), InputError);
  CHECK(folder.files() == 0);
}

TEST_CASE("a link keeps pointing at the file it leads to") {
  const Folder folder;
  std::ofstream(folder.path / "real") << "old";
  fs::create_symlink("real", folder.path / "link");
  AtomicFile file((folder.path / "link").string());
  file.write("new");
  file.commit();
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(read_all(folder.path / "real") == "new");
}

TEST_CASE("a device is written directly") {
  AtomicFile file("/dev/null");
  file.write("gone");
  CHECK_NOTHROW(file.commit());
}

}  // namespace servesim
