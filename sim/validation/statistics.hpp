/// Small statistics of validation.
#pragma once

#include <vector>

namespace servesim {

double mean(const std::vector<double>& values);
/// numpy's linear percentile, q in [0, 100]. REQUIRES: values is not empty.
double percentile(std::vector<double> values, double q);
/// Spearman's rank correlation; ties share their mean rank. REQUIRES: equal sizes, at least 2.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace servesim
