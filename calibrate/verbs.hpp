/// The program's verbs. Each throws InputError for what the user can put right.
#pragma once

#include <string>
#include <vector>

#include "flags.hpp"

namespace servesim::calibrate {

/// The verbs and their flags, `measure` first.
const std::vector<Verb>& verbs();

/// Measures into a folder; returns the exit code: 2 when the run was interrupted or its profile
/// cannot be fitted.
int run_measure(const Flags& flags);

/// Whether this build can read and write profiles; else what it lacks and what to do.
bool has_fit();
void require_fit(const std::string& verb);

void run_fit(const Flags& flags);
void run_derive(const Flags& flags);
/// Exit code 2 when something is off.
int run_check(const Flags& flags);

/// Fits the timings of `folder`, writes `out` and predictions.json beside it and prints the errors.
void fit_measurement(const std::string& folder, const std::string& datasheet,
                     const std::string& out);

}  // namespace servesim::calibrate
