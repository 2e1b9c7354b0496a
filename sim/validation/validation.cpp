#include "validation/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "validation/sections.hpp"

namespace servesim {
namespace {

const std::vector<std::string> kSections{"kernels", "steps",  "serving",
                                         "offline", "online", "transfers"};

}  // namespace

std::size_t ValidationReport::with_bar() const {
  return static_cast<std::size_t>(std::count_if(
      checks.begin(), checks.end(), [](const ValidationCheck& c) { return c.bar.has_value(); }));
}

std::size_t ValidationReport::met() const {
  return static_cast<std::size_t>(
      std::count_if(checks.begin(), checks.end(),
                    [](const ValidationCheck& c) { return c.bar.has_value() && c.met(); }));
}

void ValidationReport::compare(const std::string& section, const std::string& subject,
                               const std::string& metric, double measured, double predicted,
                               std::optional<double> bar) {
  checks.push_back({section, subject, metric, measured, predicted, predicted / measured - 1, bar});
  points.push_back({section, metric, measured, predicted});
}

void ValidationReport::summarise(const std::string& section, const std::string& subject,
                                 const std::string& metric, double error,
                                 std::optional<double> bar) {
  checks.push_back({section, subject, metric, 0, 0, error, bar});
}

ValidationReport run_validation(const std::string& data_dir, const ValidationOptions& options) {
  if (!std::filesystem::is_directory(data_dir)) {
    throw InputError(fmt::format("{}: no such folder of measurements", data_dir));
  }
  for (const std::string& section : options.sections) {
    if (std::find(kSections.begin(), kSections.end(), section) == kSections.end()) {
      throw unknown_name("section", section, kSections);
    }
  }
  const auto wanted = [&](const std::string& section) {
    const auto& sections = options.sections;
    if (!sections.empty() && std::find(sections.begin(), sections.end(), section) == sections.end())
      return false;
    options.progress(section);
    return true;
  };
  ValidationReport report;
  if (wanted("kernels")) check_kernels(data_dir, report);
  if (wanted("steps")) check_steps(data_dir, report);
  if (wanted("serving")) check_serving(data_dir, options, report);
  if (wanted("offline")) check_offline(data_dir, report);
  if (wanted("online")) check_online(data_dir, report);
  if (wanted("transfers")) check_transfers(data_dir, report);
  if (report.checks.empty()) {
    throw InputError(fmt::format("{}: holds no measurements that could be checked", data_dir));
  }
  return report;
}

}  // namespace servesim
