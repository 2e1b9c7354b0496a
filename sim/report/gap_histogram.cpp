#include "report/gap_histogram.hpp"

#include <cmath>

#include "report/percentile.hpp"

namespace servesim {

double GapHistogram::percentile_ns(double q) const {
  const auto [rank, fraction] = percentile_rank(static_cast<std::size_t>(count_), q);
  const auto lower_rank = static_cast<std::int64_t>(rank);
  std::int64_t seen = 0;
  double lower = -1;
  for (const Bucket& bucket : *buckets_) {
    if (bucket.count == 0) continue;
    seen += bucket.count;
    const double mean = bucket.sum / static_cast<double>(bucket.count);
    if (lower < 0 && seen > lower_rank) lower = mean;
    if (lower >= 0 && (fraction == 0 || seen > lower_rank + 1)) {
      return lower + (mean - lower) * fraction;
    }
  }
  return lower;
}

SampleSummary GapHistogram::summarize() const {
  SampleSummary result;
  result.count = count_;
  if (count_ == 0) return result;
  constexpr double kMsPerNs = 1e-6;
  const double n = static_cast<double>(count_);
  const double offset = sum_ / n;
  result.mean = (static_cast<double>(origin_) + offset) * kMsPerNs;
  result.std = std::sqrt(std::max(squares_ / n - offset * offset, 0.0)) * kMsPerNs;
  result.median = percentile_ns(50) * kMsPerNs;
  result.p90 = percentile_ns(90) * kMsPerNs;
  result.p95 = percentile_ns(95) * kMsPerNs;
  result.p99 = percentile_ns(99) * kMsPerNs;
  return result;
}

}  // namespace servesim
