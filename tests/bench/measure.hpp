/// A benchmark harness: CPU time of alternatives, interleaved so that a noisy machine treats them
/// alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace servesim::bench {

/// CPU seconds of this process so far.
double cpu_seconds();

/// Highest resident set size of this process so far, in bytes.
std::int64_t peak_rss_bytes();

struct Alternative {
  std::string name;
  std::function<void()> run;
  double seconds = 0;  ///< CPU time of the fastest round, filled in by race()
};

/// Runs every alternative once per round, in turn, and keeps the fastest time of each.
void race(std::vector<Alternative>& alternatives, int rounds);

/// One line of a result: what was measured, its value, and the bound it is held to.
struct Finding {
  std::string what;
  double value = 0;
  std::string unit;
  std::string bound;  ///< "<= 6", ">= 30", or empty
  bool met = true;
};

/// A ratio with its bound: `low` or `high` may be 0 for none.
Finding ratio(std::string what, double value, double low, double high);
Finding figure(std::string what, double value, std::string unit);

/// Prints findings as a Markdown table.
void print(const std::string& title, const std::vector<Finding>& findings);

}  // namespace servesim::bench
