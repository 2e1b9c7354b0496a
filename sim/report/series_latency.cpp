// The latency curves of the report, from all completed requests.
#include <algorithm>
#include <cmath>
#include <limits>

#include "report/percentile.hpp"
#include "report/series_collector.hpp"

namespace servesim {
namespace {

/// REQUIRES: `sorted` is sorted and not empty.
double quantile_of(const std::vector<float>& sorted, double share) {
  const auto [rank, fraction] = percentile_rank(sorted.size(), 100 * share);
  const double at = sorted[rank];
  return fraction == 0 ? at : at + (sorted[rank + 1] - at) * fraction;
}

/// p50, p99 and maximum, or NaN.
std::array<double, 3> bin_summary_of(std::vector<float>& values) {
  if (values.empty()) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {kNone, kNone, kNone};
  }
  std::sort(values.begin(), values.end());
  return {quantile_of(values, 0.5), quantile_of(values, 0.99), values.back()};
}

}  // namespace

/// Even steps, and ten times finer ones in the last hundredth; fewer for fewer samples.
std::vector<double> SeriesCollector::shares(std::size_t count) const {
  std::vector<double> result;
  const std::size_t steps = std::clamp<std::size_t>(count, 2, detail_.quantiles) - 1;
  for (std::size_t i = 0; i <= steps; ++i) {
    result.push_back(static_cast<double>(i) / static_cast<double>(steps));
  }
  if (count > detail_.quantiles) {
    for (int i = 990; i < 1000; ++i) result.push_back(i / 1000.0);
    result.push_back(0.9995);
    result.push_back(0.9999);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
  }
  return result;
}

Cdf SeriesCollector::cdf_of(const std::string& name, std::vector<float> values) const {
  Cdf cdf{name, {}, {}};
  if (values.empty()) return cdf;
  std::sort(values.begin(), values.end());
  cdf.shares = shares(values.size());
  for (const double share : cdf.shares) cdf.values_ms.push_back(quantile_of(values, share));
  return cdf;
}

Cdf SeriesCollector::itl_cdf() const {
  Cdf cdf{"itl", {}, {}};
  if (itl_.count() == 0) return cdf;
  cdf.shares = shares(static_cast<std::size_t>(itl_.count()));
  for (const double share : cdf.shares) cdf.values_ms.push_back(itl_.percentile_ms(100 * share));
  return cdf;
}

LatencyOverTime SeriesCollector::latency_over_time() {
  LatencyOverTime result;
  for (const char* name :
       {"requests", "ttft_p50", "ttft_p99", "ttft_max", "tpot_p50", "tpot_p99", "tpot_max"}) {
    result.bins.columns.push_back({name, {}});
  }
  result.points = {{"time_s", {}}, {"ttft", {}}, {"tpot", {}}};
  if (done_.empty()) return result;
  const auto [first, last] =
      std::minmax_element(done_.begin(), done_.end(),
                          [](const Done& a, const Done& b) { return a.arrival_s < b.arrival_s; });
  result.by_first_token = first->arrival_s == last->arrival_s && done_.size() > 1;
  float Done::*time = result.by_first_token ? &Done::first_token_s : &Done::arrival_s;
  std::sort(done_.begin(), done_.end(), [time](const Done& a, const Done& b) {
    return a.*time != b.*time ? a.*time < b.*time : a.order < b.order;
  });
  add_latency_bins(result.bins, time);
  const std::size_t every = (done_.size() + detail_.points - 1) / detail_.points;
  result.every = static_cast<std::int64_t>(every);
  for (std::size_t i = 0; i < done_.size(); i += every) {
    const Done& done = done_[i];
    result.points[0].values.push_back(done.*time);
    result.points[1].values.push_back(done.ttft_ms);
    result.points[2].values.push_back(done.tpot_ms >= 0 ? done.tpot_ms
                                                        : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
}

/// REQUIRES: done_ is sorted by `time` and not empty.
void SeriesCollector::add_latency_bins(OverTime& bins, float Done::*time) const {
  const double start = done_.front().*time;
  const double span = std::max<double>(done_.back().*time - start, 1e-3);
  // A bin for every ten requests, so that its percentiles mean something.
  const std::size_t count = std::clamp<std::size_t>(done_.size() / 10, 1, detail_.latency_bins);
  bins.start_s = start;
  bins.bin_s = span / static_cast<double>(count);
  std::size_t at = 0;
  for (std::size_t bin = 0; bin < count; ++bin) {
    const double end = start + bins.bin_s * static_cast<double>(bin + 1);
    std::vector<float> ttft, tpot;
    for (; at < done_.size() && (bin + 1 == count || done_[at].*time < end); ++at) {
      ttft.push_back(done_[at].ttft_ms);
      if (done_[at].tpot_ms >= 0) tpot.push_back(done_[at].tpot_ms);
    }
    bins.columns[0].values.push_back(static_cast<double>(ttft.size()));
    const auto ttfts = bin_summary_of(ttft);
    const auto tpots = bin_summary_of(tpot);
    for (std::size_t i = 0; i < 3; ++i) {
      bins.columns[1 + i].values.push_back(ttfts[i]);
      bins.columns[4 + i].values.push_back(tpots[i]);
    }
  }
}

}  // namespace servesim
