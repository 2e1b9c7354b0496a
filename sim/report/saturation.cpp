#include "report/saturation.hpp"

#include <algorithm>
#include <cstddef>

namespace servesim {
namespace {

double mean_wait(const std::vector<QueueSample>& samples, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += samples[i].wait_s;
  return sum / static_cast<double>(end - begin);
}

}  // namespace

bool is_saturated(std::vector<QueueSample>& samples) {
  constexpr std::size_t kFewest = 40;
  constexpr double kGrowth = 1.25;
  constexpr double kShare = 0.01;
  constexpr std::size_t kFewestWaiting = 5;
  const std::size_t n = samples.size();
  if (n < kFewest) return false;
  std::stable_sort(samples.begin(), samples.end(), [](const QueueSample& a, const QueueSample& b) {
    return a.arrival_s < b.arrival_s;
  });
  const double last_arrival_s = samples.back().arrival_s;
  const double span_s = last_arrival_s - samples.front().arrival_s;
  if (span_s <= 0) return false;
  const double late = mean_wait(samples, n - n / 4, n);
  const double early = mean_wait(samples, n / 4, n / 2);
  if (late < kGrowth * early || late < kShare * span_s) return false;
  const auto waiting = static_cast<std::size_t>(
      std::count_if(samples.begin(), samples.end(), [last_arrival_s](const QueueSample& sample) {
        return static_cast<double>(sample.arrival_s) + sample.wait_s > last_arrival_s;
      }));
  return waiting >= std::max(kFewestWaiting, static_cast<std::size_t>(kShare * double(n)));
}

}  // namespace servesim
