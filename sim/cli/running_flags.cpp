#include "cli/running_flags.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "cli/terminal.hpp"
#include "core/units.hpp"

namespace servesim {

void add_running_flags(FlagSet& flags) {
  flags.group("Running");
  flags.add({"seed", "N", "Seed of everything random [0]", Arity::kOne});
  flags.add({"threads", "N", "Runs at the same time [all cores]", Arity::kOne});
  flags.add({"quiet", "", "No table, no progress", Arity::kNone});
  flags.add({"no-progress", "", "No progress line", Arity::kNone});
}

std::size_t thread_count(const FlagSet& flags) {
  if (flags.given("threads")) {
    return static_cast<std::size_t>(parse_integer(flags.value("threads"), "--threads", 1, 1024));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

bool shows_progress(const FlagSet& flags) {
  return !flags.given("quiet") && !flags.given("no-progress") && is_terminal(STDERR_FILENO);
}

}  // namespace servesim
