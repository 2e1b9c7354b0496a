/// Percentiles and moments of a column of samples, by numpy's rules.
#pragma once

#include <cstddef>
#include <vector>

#include "report/metrics.hpp"

namespace servesim {

/// Where the q-th percentile (0..100) of `count` sorted samples lies, as numpy's "linear" method
/// has it: `fraction` of the way from sample `rank` to its successor.
struct PercentileRank {
  std::size_t rank;
  double fraction;
};
/// REQUIRES: count > 0.
PercentileRank percentile_rank(std::size_t count, double q);

/// Sums up `samples` (in milliseconds): exact percentiles, mean and population standard deviation,
/// as numpy.percentile, numpy.mean and numpy.std. Reorders `samples`.
SampleSummary summarize(std::vector<float>& samples);

}  // namespace servesim
