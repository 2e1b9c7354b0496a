#include "smoke/process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace servesim::testing {
namespace {

namespace fs = std::filesystem;

void redirect(const std::string& path, int flags, int descriptor) {
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
  close(file);
}

ProcessResult run(const std::vector<std::string>& command, const std::string& folder,
                  const std::string& input) {
  const TemporaryFolder streams;
  const std::string in = streams.write("in", input);
  const std::string out = streams.path() + "/out";
  const std::string err = streams.path() + "/err";
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT, STDERR_FILENO);
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ProcessResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

}  // namespace

std::size_t ProcessResult::error_lines() const {
  return static_cast<std::size_t>(std::count(err.begin(), err.end(), '\n'));
}

std::string binary() {
  const char* given = std::getenv("SERVESIM_BINARY");
  return given != nullptr ? given : SERVESIM_BINARY;
}

ProcessResult simulate(const std::vector<std::string>& arguments, const std::string& folder,
                       const std::string& input) {
  std::vector<std::string> command{binary()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, folder, input);
}

ProcessResult shell(const std::string& command, const std::string& folder) {
  const std::string script = "simulate() { '" + binary() + "' \"$@\"; }\n" + command + "\n";
  return run({"/bin/sh", "-c", script}, folder, "");
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "servesim-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace servesim::testing
