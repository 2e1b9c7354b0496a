// A validation report as Markdown, JSON and plots.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "validation/scatter_plot.hpp"
#include "validation/validation.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

/// How far a check is beyond its bar; those without one come last.
double excess(const ValidationCheck& check) {
  return check.bar ? std::abs(check.error) / *check.bar : -1;
}

std::string number(double value) {
  return value == 0 ? "" : fmt::format("{:.4g}", value);
}

std::string row(const ValidationCheck& check) {
  const std::string bar = check.bar ? fmt::format("{:.3g} %", 100 * *check.bar) : "";
  const char* verdict = !check.bar ? "" : check.met() ? "met" : "**not met**";
  return fmt::format("| {} | {} | {} | {} | {:+.1f} % | {} | {} |\n", check.subject, check.metric,
                     number(check.measured), number(check.predicted), 100 * check.error, bar,
                     verdict);
}

std::vector<std::string> sections_of(const ValidationReport& report) {
  std::vector<std::string> sections;
  for (const ValidationCheck& check : report.checks) {
    if (std::find(sections.begin(), sections.end(), check.section) == sections.end()) {
      sections.push_back(check.section);
    }
  }
  return sections;
}

constexpr const char* kHeader =
    "| subject | metric | measured | predicted | error | bar | |\n"
    "|---|---|---:|---:|---:|---:|---|\n";

/// What was fitted to what.
std::string introduction(const ValidationReport& report) {
  return fmt::format(
      "# Predictions against measurements\n\nWritten by `simulate validate`. {} of {} bars are "
      "met. Kernel parameters are fitted to the kernel tables of the section `kernels`, whose "
      "errors are therefore those of a fit; held-out errors stand in the profiles. Five parameters "
      "of host, sampling and heat were read off the 2 requests/s run, so that run is no "
      "independent check of them. The memory overheads were chosen with five servers' block counts "
      "in view. The link rates of the section `transfers` are read off the smallest and the "
      "largest transfer of each machine; the bars are on the rows between. No other number was "
      "fitted to a server (docs/cost-model.md).\n",
      report.met(), report.with_bar());
}

std::string missed_bars(const std::vector<ValidationCheck>& checks) {
  std::string rows;
  for (const ValidationCheck& check : checks) {
    if (!check.met()) rows += row(check);
  }
  return "\n## Bars not met\n\n" + (rows.empty() ? "None.\n" : kHeader + rows);
}

}  // namespace

std::string validation_markdown(const ValidationReport& report) {
  std::vector<ValidationCheck> sorted = report.checks;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const ValidationCheck& a, const ValidationCheck& b) { return excess(a) > excess(b); });
  std::string text = introduction(report) + missed_bars(sorted);
  for (const std::string& section : sections_of(report)) {
    text += fmt::format("\n## {}\n\n![{}]({}.svg)\n\n{}", section, section, section, kHeader);
    for (const ValidationCheck& check : sorted) {
      if (check.section == section) text += row(check);
    }
  }
  if (!report.skipped.empty()) text += "\n## Skipped\n\n";
  for (const std::string& line : report.skipped) text += "- " + line + "\n";
  return text;
}

std::string validation_json(const ValidationReport& report) {
  nlohmann::ordered_json json;
  json["schema"] = "servesim/validation/v1";
  json["bars"] = report.with_bar();
  json["met"] = report.met();
  json["checks"] = nlohmann::ordered_json::array();
  for (const ValidationCheck& c : report.checks) {
    nlohmann::ordered_json check{
        {"section", c.section}, {"subject", c.subject}, {"metric", c.metric}, {"error", c.error}};
    if (c.measured != 0) {
      check["measured"] = c.measured;
      check["predicted"] = c.predicted;
    }
    if (c.bar) {
      check["bar"] = *c.bar;
      check["met"] = c.met();
    }
    json["checks"].push_back(check);
  }
  json["skipped"] = report.skipped;
  return json.dump(1) + "\n";
}

void write_validation(const ValidationReport& report, const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw InputError(fmt::format("{}: {}", folder, failed.message()));
  std::vector<std::unique_ptr<AtomicFile>> files;
  const auto write = [&](const std::string& name, const std::string& text) {
    files.push_back(std::make_unique<AtomicFile>((fs::path(folder) / name).string()));
    files.back()->write(text);
    files.back()->close();
  };
  write("README.md", validation_markdown(report));
  write("validation.json", validation_json(report));
  for (const std::string& section : sections_of(report)) {
    const std::string svg = scatter_svg(report.points, section);
    if (!svg.empty()) write(section + ".svg", svg);
  }
  // All are whole on the disk before the first is put in place.
  for (const std::unique_ptr<AtomicFile>& file : files) file->commit();
}

}  // namespace servesim
