// calibrate: measures this machine and makes hardware profiles.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "verbs.hpp"

namespace servesim::calibrate {
namespace {

int run(std::vector<std::string> arguments) {
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
    std::fputs(usage(verbs()).c_str(), stdout);
    return 0;
  }
  std::string name = "measure";  // the verb may be left out
  if (!arguments.empty() && arguments[0].rfind("-", 0) != 0) {
    name = arguments[0];
    arguments.erase(arguments.begin());
  } else if (arguments.empty()) {
    std::fputs(usage(verbs()).c_str(), stderr);
    return 2;
  }
  std::vector<std::string> known;
  for (const Verb& verb : verbs()) {
    known.push_back(verb.name);
    if (verb.name != name) continue;
    const Flags flags(verb, arguments);
    if (flags.help()) {
      std::fputs(usage(verb).c_str(), stdout);
      return 0;
    }
    if (name == "measure") return run_measure(flags);
    if (name == "check") return run_check(flags);
    name == "fit" ? run_fit(flags) : run_derive(flags);
    return 0;
  }
  const std::string near = nearest_flag(name, known);
  throw InputError("unknown verb '" + name + "'" +
                   (near.empty() ? "" : "; did you mean '" + near + "'?") +
                   " known: measure, fit, derive, check");
}

}  // namespace
}  // namespace servesim::calibrate

int main(int argc, char** argv) {
  try {
    return servesim::calibrate::run({argv + 1, argv + argc});
  } catch (const servesim::InputError& error) {
    std::fprintf(stderr, "calibrate: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "calibrate: internal error: %s\n", error.what());
    return 1;
  }
}
