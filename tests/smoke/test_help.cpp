/// Do help, manual page and completion know all flags, and do their examples run?
#include <filesystem>
#include <set>
#include <sstream>

#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;
using testing::ProcessResult;
using testing::simulate;

/// The flags that --help names.
std::set<std::string> flags_of(const std::string& verb) {
  std::vector<std::string> arguments{"--help"};
  if (!verb.empty()) arguments.insert(arguments.begin(), verb);
  std::set<std::string> flags;
  std::stringstream words(simulate(arguments).out);
  for (std::string word; words >> word;) {
    while (!word.empty() && (word.back() == ',' || word.back() == '.' || word.back() == ':'))
      word.pop_back();
    if (word.rfind("--", 0) == 0 && word.size() > 3 && word.find('=') == std::string::npos) {
      flags.insert(word);
    }
  }
  return flags;
}

const std::vector<std::string> kTopics{"traces",    "load", "policies", "clusters", "memory",
                                       "comparing", "slo",  "outputs",  "cost"};

/// Completions of the last of `words`.
std::string completed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += " '" + word + "'";
  return testing::shell(
             "simulate completion bash > c.bash; bash -c 'source ./c.bash; "
             "COMP_WORDS=(" +
                 [&list] {
                   std::string escaped;
                   for (const char c : list)
                     escaped += c == '\'' ? std::string("\"") : std::string(1, c);
                   return escaped;
                 }() +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _simulate; "
                 "echo \"${COMPREPLY[*]}\"'; rm c.bash",
             fs::temp_directory_path().string())
      .out;
}

}  // namespace

TEST_CASE("every topic has examples, and they run") {
  const testing::TemporaryFolder folder;
  for (const char* name : {"workloads", "models"}) {
    fs::create_directory_symlink(fs::path(SERVESIM_SOURCE_DIR) / name, folder.path() + "/" + name);
  }
  const std::string overview = simulate({"help"}).out;
  for (const std::string& topic : kTopics) {
    CHECK(overview.find(topic) != std::string::npos);
    std::stringstream lines(simulate({"help", topic}).out);
    std::size_t examples = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("  simulate", 0) != 0) continue;
      const ProcessResult result = testing::shell(line, folder.path());
      INFO(line << "\n" << result.err);
      CHECK(result.exit_code == 0);
      ++examples;
    }
    CHECK(examples >= 1);
  }
}

TEST_CASE("help on verbs and flags, and on what is neither") {
  CHECK(simulate({"help", "search"}).out.find("--attainment") != std::string::npos);
  CHECK(simulate({"help", "simulate"}).out.find("--trace-set") != std::string::npos);
  CHECK(simulate({"help", "max-num-seqs"}).out.find("Sequences per step") != std::string::npos);
  CHECK(simulate({"help", "--max-num-seqs"}).out == simulate({"help", "max-num-seqs"}).out);
  const ProcessResult unknown = simulate({"help", "serch"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("did you mean 'search'") != std::string::npos);
  CHECK(simulate({"completion", "fish"}).exit_code == 2);
  CHECK(simulate({"completion"}).exit_code == 2);
}

TEST_CASE("the manual page and the completion scripts name every flag") {
  std::string page = simulate({"help", "--man"}).out;
  CHECK(page.rfind(".TH SIMULATE 1", 0) == 0);
  std::string plain;
  for (const char c : page) {
    if (c != '\\') plain += c;
  }
  const std::string bash = simulate({"completion", "bash"}).out;
  const std::string zsh = simulate({"completion", "zsh"}).out;
  CHECK(zsh.rfind("#compdef simulate", 0) == 0);
  for (const char* verb : {"", "search", "generate", "explain", "validate"}) {
    const std::set<std::string> flags = flags_of(verb);
    CHECK(flags.size() >= 4);
    for (const std::string& flag : flags) {
      INFO(verb << " " << flag);
      CHECK(bash.find(flag) != std::string::npos);
      CHECK(zsh.find(flag) != std::string::npos);
      const std::string name = flag.rfind("--no-", 0) == 0 ? flag.substr(5) : flag.substr(2);
      CHECK(plain.find(name) != std::string::npos);
    }
  }
}

TEST_CASE("bash completes verbs, flags, names and lists of names") {
  CHECK(completed({"simulate", "sea"}) == "search\n");
  CHECK(completed({"simulate", "--max-num-s"}) == "--max-num-seqs\n");
  CHECK(completed({"simulate", "search", "--obj"}) == "--objective\n");
  CHECK(completed({"simulate", "--policy", "static,ch"}) == "static,chunked\n");
  CHECK(completed({"simulate", "--hardware", "h100-p"}) == "h100-pcie\n");
  CHECK(completed({"simulate", "list", "mod"}) == "models\n");
  CHECK(completed({"simulate", "explain", "--max-num-s"}) == "\n");
}

TEST_CASE("no colour where NO_COLOR is set or no terminal is there") {
  const testing::TemporaryFolder folder;
  const std::string command = "simulate help comparing";
  CHECK(testing::shell(command, folder.path()).out.find('\x1b') == std::string::npos);
  const auto on_terminal = [&](const std::string& environment) {
    return testing::shell(environment + " TERM=xterm script -qec '" + testing::binary() +
                              " help comparing' /dev/null",
                          folder.path());
  };
  const ProcessResult colored = on_terminal("env -u NO_COLOR");
  if (colored.exit_code == 127) return;  // no script(1) here
  CHECK(colored.out.find('\x1b') != std::string::npos);
  CHECK(on_terminal("NO_COLOR=1").out.find('\x1b') == std::string::npos);
}

}  // namespace servesim
