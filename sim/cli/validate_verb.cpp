#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/flags.hpp"
#include "cli/outputs.hpp"
#include "cli/verbs.hpp"
#include "core/data_dir.hpp"
#include "core/error.hpp"
#include "validation/validation.hpp"

namespace servesim {
namespace {

/// $SERVESIM_SHARED/measured, else ../shared/measured beside the project.
std::string default_data() {
  const char* shared = std::getenv("SERVESIM_SHARED");
  const std::filesystem::path base = shared != nullptr ? shared : data_dir() + "/../shared";
  return (base / "measured").lexically_normal().string();
}

}  // namespace

FlagSet validate_flags() {
  FlagSet flags("validate",
                "Checks predictions against published measurements. Which of them parameters were "
                "fitted to, the report says.");
  flags.group("What and where");
  flags.add({"data", "DIR",
             "Folder with public_*.csv tables and serving/RUN/ folders [shared/measured beside the "
             "project]",
             Arity::kOne});
  flags.add({"section", "NAME",
             "kernels|steps|serving|offline|online|transfers; may be given again [all]",
             Arity::kEach});
  flags.add({"out", "DIR", "Write README.md, validation.json and plots there [print the table]",
             Arity::kOne});
  flags.add({"quiet", "", "No progress", Arity::kNone});
  flags.footer("Example:\n  simulate validate --data ../shared/measured --out results/validation");
  return flags;
}

int run_validate(const std::vector<std::string>& arguments, const std::string&) {
  FlagSet flags = validate_flags();
  if (!flags.parse(arguments)) {
    write_stdout(flags.help());
    return 0;
  }
  const std::vector<std::string> known{"kernels", "steps",  "serving",
                                       "offline", "online", "transfers"};
  ValidationOptions options;
  options.sections = flags.values("section");
  for (const std::string& section : options.sections) {
    if (std::find(known.begin(), known.end(), section) == known.end()) {
      throw unknown_name("section", section, known);
    }
  }
  if (!flags.given("quiet")) {
    options.progress = [](const std::string& what) { fmt::print(stderr, "checking {}\n", what); };
  }
  const std::string data = flags.value("data", default_data());
  const std::string out = flags.value("out", "");
  if (std::error_code none; !out.empty() && std::filesystem::equivalent(data, out, none)) {
    throw InputError(fmt::format("--out {} is the folder of --data; name another", out));
  }
  const ValidationReport report = run_validation(data, options);
  if (!out.empty()) {
    write_validation(report, out);
  } else {
    write_stdout(validation_markdown(report));
  }
  return 0;
}

}  // namespace servesim
