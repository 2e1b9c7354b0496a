/// The verbs of the program. Each takes the arguments after its name and returns the exit code;
/// faults of the user are InputErrors.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.hpp"

namespace servesim {

/// Replays traces: the default verb. `command` is the whole command line, for the record.
int run_simulate(const std::vector<std::string>& arguments, const std::string& command);
/// The highest rate under an SLO, and the best configuration of a space.
int run_search_verb(const std::vector<std::string>& arguments, const std::string& command);
/// Names all that can be chosen by name.
int run_list(const std::vector<std::string>& arguments);
/// Writes a synthetic trace.
int run_generate(const std::vector<std::string>& arguments);
/// What one step costs, and why.
int run_explain(const std::vector<std::string>& arguments);

/// Predictions against published measurements.
int run_validate(const std::vector<std::string>& arguments);

/// The flags of each verb, for its help, the shell's completion and the manual page.
FlagSet search_flags();

/// The whole program, without a process around it: runs a verb, turns exceptions into exit codes.
int run_program(const std::vector<std::string>& arguments);

}  // namespace servesim
