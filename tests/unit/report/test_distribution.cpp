/// Do percentiles follow numpy's rule, and does the histogram keep its promised error?
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rng.hpp"
#include "report/gap_histogram.hpp"
#include "report/percentile.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

double numpy_percentile(std::vector<double> samples, double q) {
  std::sort(samples.begin(), samples.end());
  const double position = q / 100 * static_cast<double>(samples.size() - 1);
  const auto rank = static_cast<std::size_t>(std::floor(position));
  const std::size_t next = std::min(rank + 1, samples.size() - 1);
  return samples[rank] + (samples[next] - samples[rank]) * (position - std::floor(position));
}

void check_within(double value, double exact, double relative) {
  CHECK(std::abs(value - exact) <= relative * exact + 1e-12);
}

}  // namespace

TEST_CASE("a distribution of nothing has no samples") {
  std::vector<float> none;
  CHECK(summarize(none).count == 0);
  CHECK(GapHistogram().summarize().count == 0);
}

TEST_CASE("percentiles interpolate as numpy does") {
  // numpy.percentile([15, 20, 35, 40, 50], [50, 90, 95, 99]) = 35, 46, 48, 49.6
  std::vector<float> samples{40, 15, 50, 20, 35};
  const SampleSummary d = summarize(samples);
  CHECK(d.count == 5);
  CHECK(d.mean == Approx(32));
  CHECK(d.std == Approx(12.884098726725126));
  CHECK(d.median == Approx(35));
  CHECK(d.p90 == Approx(46));
  CHECK(d.p95 == Approx(48));
  CHECK(d.p99 == Approx(49.6));
}

TEST_CASE("one sample is every percentile") {
  std::vector<float> samples{7.5F};
  const SampleSummary d = summarize(samples);
  CHECK(d.median == 7.5);
  CHECK(d.p99 == 7.5);
  CHECK(d.std == 0);
}

TEST_CASE("selection agrees with sorting on random samples") {
  Rng rng(1, "test.percentiles");
  for (int round = 0; round < 50; ++round) {
    std::vector<float> samples;
    std::vector<double> copy;
    const std::uint64_t n = 1 + rng.below(300);
    for (std::uint64_t i = 0; i < n; ++i) {
      samples.push_back(static_cast<float>(rng.below(40)));
      copy.push_back(samples.back());
    }
    const SampleSummary d = summarize(samples);
    CHECK(d.median == Approx(numpy_percentile(copy, 50)));
    CHECK(d.p90 == Approx(numpy_percentile(copy, 90)));
    CHECK(d.p95 == Approx(numpy_percentile(copy, 95)));
    CHECK(d.p99 == Approx(numpy_percentile(copy, 99)));
  }
}

TEST_CASE("equal gaps have exact percentiles and no deviation") {
  GapHistogram histogram;
  histogram.add(SimTime(12'345'678), 1'000'000'000);
  histogram.add(SimTime(12'345'678), 3);
  const SampleSummary d = histogram.summarize();
  CHECK(d.count == 1'000'000'003);
  CHECK(d.mean == 12.345678);
  CHECK(d.std == 0);
  CHECK(d.p99 == Approx(12.345678).epsilon(1e-12));
}

TEST_CASE("gap percentiles stay within the stated error, moments are exact") {
  static_assert(GapHistogram::kRelativeError <= 0.005);
  Rng rng(2, "test.gaps");
  GapHistogram histogram;
  std::vector<double> samples;
  double sum = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto gap = static_cast<std::int64_t>(std::exp(3 + 18 * rng.uniform()));
    const auto count = static_cast<std::int64_t>(1 + rng.below(3));
    histogram.add(SimTime(gap), count);
    for (std::int64_t j = 0; j < count; ++j) samples.push_back(static_cast<double>(gap) * 1e-6);
  }
  for (const double sample : samples) sum += sample;
  const double mean = sum / static_cast<double>(samples.size());
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  const SampleSummary d = histogram.summarize();
  CHECK(d.mean == Approx(mean).epsilon(1e-9));
  CHECK(d.std == Approx(std::sqrt(squares / static_cast<double>(samples.size()))).epsilon(1e-9));
  check_within(d.median, numpy_percentile(samples, 50), 0.005);
  check_within(d.p90, numpy_percentile(samples, 90), 0.005);
  check_within(d.p95, numpy_percentile(samples, 95), 0.005);
  check_within(d.p99, numpy_percentile(samples, 99), 0.005);
}

TEST_CASE("the histogram takes the shortest and the longest gap") {
  GapHistogram histogram;
  histogram.add(SimTime(0), 1);
  histogram.add(SimTime::max(), 1);
  check_within(histogram.summarize().p99, SimTime::max().ms() * 0.99, 0.005);
}

}  // namespace servesim
