#include "report/percentile.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace servesim {
namespace {

/// Answers ascending percentiles of one column by repeated selection, which costs a fraction of a
/// full sort.
class Selector {
 public:
  explicit Selector(std::vector<float>& samples) : samples_(samples) {}

  /// REQUIRES: q is no smaller than in the call before.
  double percentile(double q) {
    const auto [rank, fraction] = percentile_rank(samples_.size(), q);
    const auto at = samples_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(samples_.begin() + static_cast<std::ptrdiff_t>(settled_), at, samples_.end());
    settled_ = rank;
    if (fraction == 0) return *at;
    const double next = *std::min_element(std::next(at), samples_.end());
    return *at + (next - *at) * fraction;
  }

 private:
  std::vector<float>& samples_;
  std::size_t settled_ = 0;  // everything before is no larger than everything from here on
};

}  // namespace

PercentileRank percentile_rank(std::size_t count, double q) {
  const double position = q / 100 * static_cast<double>(count - 1);
  const auto rank = std::min(static_cast<std::size_t>(position), count - 1);
  const double fraction = rank + 1 < count ? position - static_cast<double>(rank) : 0.0;
  return {rank, fraction};
}

SampleSummary summarize(std::vector<float>& samples) {
  SampleSummary result;
  result.count = static_cast<std::int64_t>(samples.size());
  if (samples.empty()) return result;
  const double n = static_cast<double>(samples.size());
  double sum = 0;
  for (const float sample : samples) sum += sample;
  result.mean = sum / n;
  double squares = 0;
  for (const float sample : samples) squares += (sample - result.mean) * (sample - result.mean);
  result.std = std::sqrt(squares / n);
  Selector selector(samples);
  result.median = selector.percentile(50);
  result.p90 = selector.percentile(90);
  result.p95 = selector.percentile(95);
  result.p99 = selector.percentile(99);
  return result;
}

}  // namespace servesim
