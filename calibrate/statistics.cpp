#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

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

namespace {

using Matrix = std::vector<std::vector<double>>;

/// Gaussian elimination with pivots; empty where the matrix is singular.
std::vector<double> solved(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    constexpr double kSingular = 1e-12;  // the columns are scaled to be about 1
    if (std::abs(a[pivot][i]) < kSingular) return {};
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    for (std::size_t r = i + 1; r < n; ++r) {
      const double factor = a[r][i] / a[i][i];
      for (std::size_t j = i; j < n; ++j) a[r][j] -= factor * a[i][j];
      b[r] -= factor * b[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return b;
}

/// Coefficients of the chosen columns for a target of ones; empty if any would be negative.
std::vector<double> of_subset(const Matrix& columns, const std::vector<std::size_t>& chosen) {
  Matrix normal(chosen.size(), std::vector<double>(chosen.size(), 0));
  std::vector<double> target(chosen.size(), 0);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (std::size_t row = 0; row < columns[0].size(); ++row) {
      target[i] += columns[chosen[i]][row];
      for (std::size_t j = 0; j < chosen.size(); ++j) {
        normal[i][j] += columns[chosen[i]][row] * columns[chosen[j]][row];
      }
    }
  }
  std::vector<double> c = solved(normal, target);
  for (const double value : c) {
    if (value < 0) return {};
  }
  return c;
}

}  // namespace

std::vector<double> fit_nonnegative(const std::vector<std::vector<double>>& columns,
                                    const std::vector<double>& us) {
  Matrix relative = columns;
  std::vector<double> scale;
  for (std::vector<double>& column : relative) {
    for (std::size_t row = 0; row < us.size(); ++row) column[row] /= us[row];
    scale.push_back(std::max(*std::max_element(column.begin(), column.end()), 1e-300));
    for (double& value : column) value /= scale.back();
  }
  std::vector<double> best(columns.size(), 0);
  double least = static_cast<double>(us.size());  // of all zeros
  for (std::size_t mask = 1; mask < std::size_t{1} << columns.size(); ++mask) {
    std::vector<std::size_t> chosen;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      if ((mask >> j & 1) != 0) chosen.push_back(j);
    }
    const std::vector<double> c = of_subset(relative, chosen);
    if (c.empty()) continue;
    double residual = 0;
    for (std::size_t row = 0; row < us.size(); ++row) {
      double error = 1;
      for (std::size_t i = 0; i < chosen.size(); ++i) error -= c[i] * relative[chosen[i]][row];
      residual += error * error;
    }
    if (residual >= least) continue;
    least = residual;
    std::fill(best.begin(), best.end(), 0.0);
    for (std::size_t i = 0; i < chosen.size(); ++i) best[chosen[i]] = c[i] / scale[chosen[i]];
  }
  return best;
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
