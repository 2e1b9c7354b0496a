/// The verbs of the program. Each takes the arguments after its name and returns the exit code;
/// faults of the user are InputErrors.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.hpp"

namespace servesim {

/// One verb, as dispatch, help, completion and the manual page know it.
struct Verb {
  std::string name;     ///< empty: the default verb
  std::string summary;  ///< a line of `simulate help`
  FlagSet (*flags)();
  /// `command` is the whole command line, for the record.
  int (*run)(const std::vector<std::string>& arguments, const std::string& command);
};

/// All verbs, the default one first.
const std::vector<Verb>& verbs();

/// Replays traces: the default verb.
FlagSet simulate_flags();
int run_simulate(const std::vector<std::string>& arguments, const std::string& command);
/// The highest rate under an SLO, and the best configuration of a space.
FlagSet search_flags();
int run_search_verb(const std::vector<std::string>& arguments, const std::string& command);
/// Will it fit: the HBM budget of deployments and of training.
FlagSet size_flags();
int run_size(const std::vector<std::string>& arguments, const std::string& command);
/// Names all that can be chosen by name.
FlagSet list_flags();
int run_list(const std::vector<std::string>& arguments, const std::string& command);
/// Writes a synthetic trace.
FlagSet generate_flags();
int run_generate(const std::vector<std::string>& arguments, const std::string& command);
/// What one step costs, and why.
FlagSet explain_flags();
int run_explain(const std::vector<std::string>& arguments, const std::string& command);
/// Predictions against published measurements.
FlagSet validate_flags();
int run_validate(const std::vector<std::string>& arguments, const std::string& command);
/// Help by topic, and the manual page.
FlagSet help_flags();
int run_help(const std::vector<std::string>& arguments, const std::string& command);
/// Completion scripts for shells.
FlagSet completion_flags();
int run_completion(const std::vector<std::string>& arguments, const std::string& command);

/// The whole program, without a process around it: runs a verb, turns exceptions into exit codes.
int run_program(const std::vector<std::string>& arguments);

}  // namespace servesim
