/// The progress line on standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace servesim {

/// How far a set of runs is.
struct ProgressState {
  std::size_t runs = 1;
  std::size_t runs_done = 0;
  std::uint64_t requests_read = 0;   ///< over all runs
  std::uint64_t requests_total = 0;  ///< over all runs; 0: not known
  double simulated_s = 0;            ///< of the run in progress
  std::string noun = "run";          ///< what is counted
  std::optional<double> share;       ///< of the work that is done; absent: by requests
};

/// Redraws one line, starting after a second; erases it at the end. Silent when not `enabled`.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(const ProgressState& state);

 private:
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
};

/// The line as it is drawn, without control characters, at most `width` columns wide.
std::string progress_text(const ProgressState& state, double elapsed_s, std::size_t width);

}  // namespace servesim
