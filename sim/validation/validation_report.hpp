/// What a validation finds: checks against bars, and the points behind them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace servesim {

/// One comparison. `error` is relative and signed, or a mean of absolute errors where the metric
/// says so; it is met when |error| <= bar. Without a bar the comparison is only reported.
struct ValidationCheck {
  std::string section;  ///< kernels | steps | serving | offline | online | transfers
  std::string subject;  ///< which GPU, run, batch size
  std::string metric;   ///< e.g. "TPOT mean"
  double measured = 0;  ///< 0 where `error` sums up many points
  double predicted = 0;
  double error = 0;
  std::optional<double> bar;
  bool met() const { return !bar || (error <= *bar && error >= -*bar); }
};

/// One measured value beside its prediction, for plots.
struct ValidationPoint {
  std::string section;
  std::string series;
  double measured = 0;
  double predicted = 0;
};

struct ValidationReport {
  std::vector<ValidationCheck> checks;
  std::vector<ValidationPoint> points;
  std::vector<std::string> skipped;  ///< sections or runs whose data is absent, and why

  std::size_t with_bar() const;
  std::size_t met() const;
  /// Records `predicted` against `measured` and returns the check.
  void compare(const std::string& section, const std::string& subject, const std::string& metric,
               double measured, double predicted, std::optional<double> bar);
  /// Records a figure that sums up many points.
  void summarise(const std::string& section, const std::string& subject, const std::string& metric,
                 double error, std::optional<double> bar);
};

}  // namespace servesim
