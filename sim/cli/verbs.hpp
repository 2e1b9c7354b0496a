/// The verbs of the program. Each takes the arguments after its name and returns the exit code;
/// faults of the user are InputErrors.
#pragma once

#include <string>
#include <vector>

namespace servesim {

/// Replays traces: the default verb. `command` is the whole command line, for the record.
int run_simulate(const std::vector<std::string>& arguments, const std::string& command);
/// Names all that can be chosen by name.
int run_list(const std::vector<std::string>& arguments);
/// Writes a synthetic trace.
int run_generate(const std::vector<std::string>& arguments);
/// What one step costs, and why.
int run_explain(const std::vector<std::string>& arguments);

/// Will it fit: the HBM budget of deployments and of training. `command` as in run_simulate().
int run_size(const std::vector<std::string>& arguments, const std::string& command);

/// Predictions against published measurements.
int run_validate(const std::vector<std::string>& arguments);

/// The whole program, without a process around it: runs a verb, turns exceptions into exit codes.
int run_program(const std::vector<std::string>& arguments);

}  // namespace servesim
