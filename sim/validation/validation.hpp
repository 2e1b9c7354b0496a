/// Predictions against published measurements. Nothing here is fitted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validation/validation_report.hpp"

namespace servesim {

struct ValidationOptions {
  /// Of "kernels", "steps", "serving", "offline", "online", "transfers"; empty: all.
  std::vector<std::string> sections;
  /// Serving runs (folder names) to replay; empty: every folder that is there.
  std::vector<std::string> runs;
  /// Called before each section and run, for progress.
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// Checks everything found in `data_dir`, a folder with public_*.csv tables and serving/RUN/
/// folders (summary.json, requests.csv.gz). What is absent is listed as skipped. Throws InputError
/// when the folder is not there, holds nothing to check, or a file in it is malformed.
ValidationReport run_validation(const std::string& data_dir, const ValidationOptions& options);

/// The report as Markdown (failed bars first), as JSON (schema servesim/validation/v1), and one SVG
/// scatter plot per section, written to `folder` as README.md, validation.json and SECTION.svg.
/// Throws InputError when the folder cannot be written.
void write_validation(const ValidationReport& report, const std::string& folder);

std::string validation_markdown(const ValidationReport& report);
std::string validation_json(const ValidationReport& report);

}  // namespace servesim
