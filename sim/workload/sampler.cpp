#include "workload/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/params.hpp"

namespace servesim {
namespace {

constexpr double kLargest = 1e12;

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

std::vector<double> numbers_of(const nlohmann::json& block, const std::string& key,
                               const Params& params) {
  const auto found = block.find(key);
  if (found == block.end() || !found->is_array() || found->size() < 2) {
    throw params.error(key, "must be an array of two numbers or more");
  }
  std::vector<double> numbers;
  for (const nlohmann::json& item : *found) {
    if (!item.is_number() || !(item.get<double>() >= 0 && item.get<double>() <= kLargest)) {
      throw params.error(key, item.dump() + " is not accepted; numbers from 0 to 1e12 are");
    }
    numbers.push_back(item.get<double>());
  }
  if (!std::is_sorted(numbers.begin(), numbers.end())) throw params.error(key, "must not fall");
  return numbers;
}

}  // namespace

Distribution Distribution::fixed(double value) {
  Distribution distribution;
  distribution.a_ = value;
  return distribution;
}

Distribution Distribution::uniform(double low, double high) {
  Distribution distribution;
  distribution.kind_ = Kind::kUniform;
  distribution.a_ = low;
  distribution.b_ = high;
  return distribution;
}

Distribution Distribution::lognormal(double median, double sigma) {
  Distribution distribution;
  distribution.kind_ = Kind::kLognormal;
  distribution.a_ = median;
  distribution.b_ = sigma;
  return distribution;
}

Distribution Distribution::quantiles(std::vector<double> probabilities,
                                     std::vector<double> values) {
  Distribution distribution;
  distribution.kind_ = Kind::kQuantiles;
  distribution.probabilities_ = std::move(probabilities);
  distribution.values_ = std::move(values);
  return distribution;
}

double Distribution::at_normal(double z) const {
  switch (kind_) {
    case Kind::kFixed:
      return a_;
    case Kind::kUniform:
      return a_ + (b_ - a_) * normal_cdf(z);
    case Kind::kLognormal:
      return a_ * std::exp(b_ * z);
    case Kind::kQuantiles:
      break;
  }
  const double p = normal_cdf(z);
  const auto above = std::upper_bound(probabilities_.begin() + 1, probabilities_.end() - 1, p);
  const auto i = static_cast<std::size_t>(above - probabilities_.begin());
  const double width = probabilities_[i] - probabilities_[i - 1];
  const double share = width > 0 ? std::clamp((p - probabilities_[i - 1]) / width, 0.0, 1.0) : 1.0;
  return values_[i - 1] + (values_[i] - values_[i - 1]) * share;
}

Distribution parse_distribution(const nlohmann::json& block, const std::string& origin,
                                const std::string& pointer) {
  Params params(block, origin, pointer);
  params.required<std::string>("source");
  params.required<std::string>("kind");
  const auto kind = params.required<std::string>("distribution");
  Distribution distribution;
  if (kind == "fixed") {
    distribution = Distribution::fixed(params.number("value", 0, kLargest));
  } else if (kind == "uniform") {
    const double low = params.number("low", 0, kLargest);
    distribution = Distribution::uniform(low, params.number("high", low, kLargest));
  } else if (kind == "lognormal") {
    const double median = params.number("median", 0, kLargest);
    distribution = Distribution::lognormal(median, params.number("sigma", 0, 10));
  } else if (kind == "quantiles") {
    params.allow("probabilities");
    params.allow("values");
    std::vector<double> probabilities = numbers_of(block, "probabilities", params);
    std::vector<double> values = numbers_of(block, "values", params);
    if (probabilities.front() != 0 || probabilities.back() != 1) {
      throw params.error("probabilities", "must rise from 0 to 1");
    }
    if (values.size() != probabilities.size()) {
      throw params.error("values", "must be as many as the probabilities");
    }
    distribution = Distribution::quantiles(std::move(probabilities), std::move(values));
  } else {
    throw params.error(
        "distribution",
        unknown_name("distribution", kind, {"fixed", "uniform", "lognormal", "quantiles"}).what());
  }
  params.finish();
  return distribution;
}

}  // namespace servesim
