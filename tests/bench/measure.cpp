#include "measure.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <limits>

namespace servesim::bench {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

void race(std::vector<Alternative>& alternatives, int rounds) {
  for (Alternative& alternative : alternatives)
    alternative.seconds = std::numeric_limits<double>::max();
  for (int round = 0; round < rounds; ++round) {
    for (Alternative& alternative : alternatives) {
      const double start = cpu_seconds();
      alternative.run();
      alternative.seconds = std::min(alternative.seconds, cpu_seconds() - start);
    }
  }
}

Finding ratio(std::string what, double value, double low, double high) {
  Finding finding{std::move(what), value, "x", "", true};
  if (low > 0) finding.bound = fmt::format(">= {:g}", low);
  if (high > 0) finding.bound = fmt::format("<= {:g}", high);
  finding.met = value >= low && (high <= 0 || value <= high);
  return finding;
}

Finding figure(std::string what, double value, std::string unit) {
  return {std::move(what), value, std::move(unit), "", true};
}

void print(const std::string& title, const std::vector<Finding>& findings) {
  fmt::print("\n### {}\n\n| what | measured | bound | met |\n|---|---:|---|---|\n", title);
  for (const Finding& f : findings) {
    fmt::print("| {} | {:.4g} {} | {} | {} |\n", f.what, f.value, f.unit, f.bound,
               f.bound.empty() ? "" : (f.met ? "yes" : "NO"));
  }
}

}  // namespace servesim::bench
