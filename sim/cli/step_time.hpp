/// The --step-time flag.
#pragma once

#include <string>
#include <string_view>

namespace servesim {

/// With these, no step is longer than simulated time can hold, whatever the token budget.
inline constexpr double kLongestBaseUs = 1e9;
inline constexpr double kLongestTokenUs = 1e6;

/// How steps are timed: by a named cost model, whose parameters only `linear` has.
struct StepTime {
  std::string model = "roofline";
  double base_us = 0;
  double per_token_us = 0;

  bool is_linear() const { return model == "linear"; }
  /// "roofline", or "linear:base_us=B,per_token_us=P".
  std::string text() const;
};

/// Throws InputError for anything that is not of one of the two forms.
StepTime parse_step_time(std::string_view text);

}  // namespace servesim
