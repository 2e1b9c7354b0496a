/// The distribution of inter-token latencies: too many samples to keep, so a logarithmic histogram.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "core/time.hpp"
#include "report/metrics.hpp"

namespace servesim {

/// Counts gaps in buckets 1/256 of a power of two wide. Mean and standard deviation are exact;
/// a percentile is off by at most 1/256 = 0.39 % of its value, and not at all when its bucket holds
/// one distinct gap.
class GapHistogram {
 public:
  static constexpr double kRelativeError = 1.0 / 256;

  /// Adds `count` gaps of length `gap`, in constant time. REQUIRES: gap >= 0, count >= 0.
  void add(SimTime gap, std::int64_t count) {
    const auto ns = static_cast<std::uint64_t>(gap.ns());
    if (count_ == 0) origin_ = gap.ns();
    Bucket& bucket = (*buckets_)[index_of(ns)];
    bucket.count += count;
    const double weight = static_cast<double>(count);
    const double offset = static_cast<double>(gap.ns() - origin_);
    bucket.sum += weight * static_cast<double>(ns);
    count_ += count;
    sum_ += weight * offset;
    squares_ += weight * offset * offset;
  }

  std::int64_t count() const { return count_; }
  SampleSummary summarize() const;
  /// REQUIRES: count() > 0.
  double percentile_ms(double q) const { return percentile_ns(q) * 1e-6; }

 private:
  struct Bucket {
    std::int64_t count = 0;
    double sum = 0;  // of its gaps, so that a bucket can answer with their mean
  };
  static constexpr int kSubBits = 8;
  static constexpr std::size_t kBuckets = std::size_t{64 - kSubBits} << kSubBits;

  /// Gaps below 512 ns have a bucket each; above, the top nine bits choose it.
  static std::size_t index_of(std::uint64_t ns) {
    const int excess = std::max(static_cast<int>(std::bit_width(ns)) - (kSubBits + 1), 0);
    return (static_cast<std::size_t>(excess) << kSubBits) + static_cast<std::size_t>(ns >> excess);
  }
  double percentile_ns(double q) const;

  std::unique_ptr<std::array<Bucket, kBuckets>> buckets_ =
      std::make_unique<std::array<Bucket, kBuckets>>();
  std::int64_t count_ = 0;
  std::int64_t origin_ = 0;  // moments are taken about the first gap: equal gaps give exactly 0
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace servesim
