// calibrate check: a profile against this machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "backend.hpp"
#include "check.hpp"
#include "core/error.hpp"
#include "hardware/hardware_loader.hpp"
#include "runner.hpp"
#include "text.hpp"
#include "verbs.hpp"

namespace servesim::calibrate {
namespace {

/// What tells most in little time: bandwidth, GEMMs, attention, elementwise kernels.
std::vector<Case> check_suite(const SuiteLimits& limits) {
  std::vector<Case> cases;
  for (const Case& c : suite(limits)) {
    const std::string family = family_of(c.kernel);
    if (family == "bandwidth" || family == "gemm" || family == "decode_attention" ||
        family == "prefill_attention" || family == "elementwise") {
      cases.push_back(c);
    }
  }
  return cases;
}

void write_json(const std::string& path, const std::string& profile,
                const std::vector<Comparison>& comparisons, const std::vector<Finding>& findings) {
  std::vector<std::string> kernels, off;
  for (const Comparison& c : comparisons) {
    kernels.push_back(JsonObject()
                          .text("kernel", c.kernel)
                          .number("rows", static_cast<double>(c.rows))
                          .number("measured_over_predicted", c.ratio)
                          .str(2));
  }
  for (const Finding& f : findings) off.push_back(json_string(f.what));
  write_file(path, JsonObject()
                           .text("profile", profile)
                           .raw("kernels", json_array(kernels, 1))
                           .raw("findings", json_array(off, 1))
                           .str() +
                       "\n");
}

}  // namespace

int run_check(const Flags& flags) {
  const HardwareSpec profile = load_hardware(flags.operand());
  const double budget_s = flags.number("--time-budget", 2, 86'400);
  const auto backend = backend_of(flags);
  Environment environment = backend->environment();
  std::vector<Finding> findings = machine_findings(profile, environment);
  const bool other = std::any_of(findings.begin(), findings.end(),
                                 [](const Finding& f) { return f.other_machine; });
  std::vector<Comparison> comparisons;
  if (!other) {  // timings of another machine would say nothing of the profile
    const SuiteLimits limits = backend->limits();
    const Effort effort = effort_for(limits.gpu, budget_s);
    const Plan planned = plan(check_suite(limits), limits, effort, 0.8 * budget_s);
    const Measurement measured =
        run(*backend, planned, {effort, budget_s, nullptr, [](const std::string&) {}});
    std::vector<TimedCase> timings;
    for (const Timing& t : measured.timings) timings.push_back({t.c, t.summary.us});
    environment.throttling = measured.throttling;
    findings = machine_findings(profile, environment);
    // Twice the spread of a fit; cores are shared with whatever else runs.
    const double tolerance = limits.gpu ? 0.15 : 0.4;
    const auto more = timing_findings(profile, environment, timings, tolerance);
    findings.insert(findings.end(), more.begin(), more.end());
    comparisons = compare(profile, timings);
  }
  for (const Comparison& c : comparisons) {
    fmt::print("{:<24} {:>4} timings  measured / predicted {:.2f}\n", c.kernel, c.rows, c.ratio);
  }
  for (const Finding& f : findings) fmt::print("off: {}\n", f.what);
  if (flags.has("--json")) write_json(flags.text("--json"), flags.operand(), comparisons, findings);
  if (findings.empty()) fmt::print("nothing is off\n");
  if (other) {
    throw InputError(flags.operand() + " is a profile of another machine than " +
                     environment.device);
  }
  return findings.empty() ? 0 : 2;
}

}  // namespace servesim::calibrate
