/// The program's verbs. Each throws InputError for what the user can put right.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend.hpp"
#include "flags.hpp"

namespace servesim::calibrate {

/// The verbs and their flags, `measure` first.
const std::vector<Verb>& verbs();

/// Measures into a folder; returns the exit code: 2 when the run was interrupted or its profile
/// cannot be fitted.
int run_measure(const Flags& flags);

/// The backend that --backend, --device, --threads and --seed name.
std::unique_ptr<Backend> backend_of(const Flags& flags);

/// Whether this build can fit, check and derive profiles.
bool has_fit();

/// Throws InputError when a profile of this machine could not be fitted for want of a datasheet;
/// nothing is asked of a build that cannot fit.
void require_datasheet(const Environment& environment, const std::string& datasheet);

/// A profile from timings, measured or published.
void run_fit(const Flags& flags);
/// A profile of a GPU without timings.
void run_derive(const Flags& flags);
/// A profile against this machine; exit code 2 when something is off.
int run_check(const Flags& flags);

/// Fits the timings of `folder`, writes `out` and predictions.json beside it and prints the errors.
void fit_measurement(const std::string& folder, const std::string& datasheet,
                     const std::string& out);

}  // namespace servesim::calibrate
