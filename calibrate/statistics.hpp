/// What many timings of one kernel come to.
#pragma once

#include <vector>

namespace servesim::calibrate {

/// The q-quantile, linear between neighbours. REQUIRES: values not empty, q in [0, 1].
double quantile(std::vector<double> values, double q);
inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

/// One kernel's timings. Microseconds a call.
struct Summary {
  double us = 0;     ///< what counts: the least of the passes' medians; on a CPU the fastest sample
  double least = 0;  ///< of all samples
  double p90 = 0;    ///< of all samples
  double spread = 0;  ///< (p75 - p25) / median of all samples
  int samples = 0;
  int passes = 0;
};

/// `passes` holds the samples of each pass over the suite; passes without samples do not count.
/// Returns a Summary with samples = 0 when there is none.
Summary summarise(const std::vector<std::vector<double>>& passes);

/// A kernel repeated for seconds: its time climbs from `cold_us` to `hot_us` with one time
/// constant.
struct Sustained {
  double cold_us = 0;
  double hot_us = 0;
  double time_constant_s = 0;
  bool slows = false;  ///< the climb exceeds the noise; else hot = cold = the median
  /// Sustained rate against that of a burst; 1 when nothing slows.
  double ratio() const { return slows ? cold_us / hot_us : 1; }
};

/// Fits us(t) = hot - (hot - cold) exp(-t/tau) by least squares over a grid of tau. A climb below
/// 1 % or below twice the standard error of the residuals is none. REQUIRES: equal sizes.
Sustained fit_sustained(const std::vector<double>& at_s, const std::vector<double>& us);

/// us = t0 + size / rate by least squares of relative errors. `rate` per us.
struct Line {
  double t0_us = 0;
  double rate = 1;
  double at(double size) const { return t0_us + size / rate; }
};
/// Both are kept at or above 0. REQUIRES: two points of different size at least.
Line fit_line(const std::vector<double>& sizes, const std::vector<double>& us);

/// us = sum of c[j] columns[j], no c[j] negative, by least squares of relative errors: every subset
/// of the columns is solved and the best one whose coefficients are all positive is taken.
/// REQUIRES: one to four columns, each as long as `us`; us > 0.
std::vector<double> fit_nonnegative(const std::vector<std::vector<double>>& columns,
                                    const std::vector<double>& us);

}  // namespace servesim::calibrate
