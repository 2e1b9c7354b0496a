#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace servesim::calibrate {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

Summary summarise(const std::vector<std::vector<double>>& passes) {
  Summary summary;
  std::vector<double> all;
  for (const std::vector<double>& pass : passes) {
    if (pass.empty()) continue;
    const double middle = median(pass);
    if (summary.passes++ == 0 || middle < summary.us) summary.us = middle;
    all.insert(all.end(), pass.begin(), pass.end());
  }
  if (all.empty()) return summary;
  summary.samples = static_cast<int>(all.size());
  summary.least = *std::min_element(all.begin(), all.end());
  summary.p90 = quantile(all, 0.9);
  summary.spread = (quantile(all, 0.75) - quantile(all, 0.25)) / median(all);
  return summary;
}

namespace {

struct LeastSquares {
  double offset = 0, slope = 0, residual = 0;
};

/// y = offset + slope * x, each point with its weight.
LeastSquares weighted_line(const std::vector<double>& x, const std::vector<double>& y,
                           const std::vector<double>& weights) {
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    w += weights[i];
    wx += weights[i] * x[i];
    wy += weights[i] * y[i];
    wxx += weights[i] * x[i] * x[i];
    wxy += weights[i] * x[i] * y[i];
  }
  LeastSquares fit;
  const double spread = w * wxx - wx * wx;
  fit.slope = spread > 1e-12 * wxx * w ? (w * wxy - wx * wy) / spread : 0;
  fit.offset = (wy - fit.slope * wx) / w;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = y[i] - fit.offset - fit.slope * x[i];
    fit.residual += weights[i] * error * error;
  }
  return fit;
}

}  // namespace

Sustained fit_sustained(const std::vector<double>& at_s, const std::vector<double>& us) {
  constexpr std::size_t kFewest = 8;
  constexpr double kLeastClimb = 0.01;
  Sustained result;
  if (us.empty()) return result;
  result.cold_us = result.hot_us = median(us);
  if (us.size() < kFewest) return result;
  const std::vector<double> weights(us.size(), 1.0);
  LeastSquares best;
  double best_tau = 0;
  const double span = at_s.back() - at_s.front();
  for (double tau = span / 2000; tau <= span / 3; tau *= 1.15) {
    std::vector<double> x;
    for (const double t : at_s) x.push_back(1 - std::exp(-(t - at_s.front()) / tau));
    const LeastSquares fit = weighted_line(x, us, weights);
    if (best_tau > 0 && fit.residual >= best.residual) continue;
    best = fit;
    best_tau = tau;
  }
  const double n = static_cast<double>(us.size());
  // The cold end hangs on the few points within one time constant of the start.
  const double early = std::max(1.0, n * best_tau / span);
  const double noise = std::sqrt(best.residual / n) * std::sqrt(1 / early + 1 / n);
  if (best_tau <= 0 || best.slope < kLeastClimb * best.offset || best.slope < 2 * noise) {
    return result;
  }
  return {best.offset, best.offset + best.slope, best_tau, true};
}

Line fit_line(const std::vector<double>& sizes, const std::vector<double>& us) {
  std::vector<double> weights;
  for (const double t : us) weights.push_back(1 / (t * t));
  LeastSquares fit = weighted_line(sizes, us, weights);
  if (fit.offset < 0) {  // through the origin then
    double xy = 0, xx = 0;
    for (std::size_t i = 0; i < us.size(); ++i) {
      xy += weights[i] * sizes[i] * us[i];
      xx += weights[i] * sizes[i] * sizes[i];
    }
    fit = {0, xy / xx, 0};
  }
  constexpr double kLeastSlope = 1e-15;
  return {fit.offset, 1 / std::max(fit.slope, kLeastSlope)};
}

}  // namespace servesim::calibrate
