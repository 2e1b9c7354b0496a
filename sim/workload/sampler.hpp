/// Distributions of lengths and times, as a workload spec states them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/rng.hpp"

namespace servesim {

/// A distribution given by its quantile function. `{"distribution": "fixed", "value": V}`,
/// `{"distribution": "uniform", "low": A, "high": B}`, `{"distribution": "lognormal", "median": M,
/// "sigma": S}` or `{"distribution": "quantiles", "probabilities": [0, ..., 1], "values": [...]}`
/// with linear interpolation.
class Distribution {
 public:
  static Distribution fixed(double value);
  static Distribution uniform(double low, double high);
  /// exp(normal) with the given median; `sigma` is the standard deviation of the logarithm.
  static Distribution lognormal(double median, double sigma);
  /// REQUIRES: equal sizes >= 2, probabilities rising from 0 to 1, values not falling.
  static Distribution quantiles(std::vector<double> probabilities, std::vector<double> values);

  /// The value at the quantile where the standard normal distribution has `z`. Correlated draws of
  /// two distributions come from correlated normals.
  double at_normal(double z) const;
  double sample(Rng& rng) const { return at_normal(rng.normal()); }

 private:
  enum class Kind { kFixed, kUniform, kLognormal, kQuantiles };

  Kind kind_ = Kind::kFixed;
  double a_ = 0;
  double b_ = 0;
  std::vector<double> probabilities_;
  std::vector<double> values_;
};

/// Reads a distribution, whose block must also state `source` and `kind`. Throws InputError naming
/// file and JSON pointer.
Distribution parse_distribution(const nlohmann::json& block, const std::string& origin,
                                const std::string& pointer);

}  // namespace servesim
