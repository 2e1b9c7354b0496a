/// Comparing results with the references: which elements, and how much error is tolerated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference.hpp"

namespace servesim::calibrate {

/// The largest error over what is tolerated.
class Checker {
 public:
  /// A sum of products that ends in bf16: 8 bits of mantissa, and sums in another order.
  void dot(double got, const Dot& want) {
    note(std::abs(got - want.value), 0.01 * std::abs(want.value) + 0.003 * want.norm);
  }
  void value(double got, double want, double relative, double absolute) {
    note(std::abs(got - want), relative * std::abs(want) + absolute);
  }
  void equal(std::int64_t got, std::int64_t want) { note(got == want ? 0 : 2, 1); }
  double worst() const { return worst_; }

 private:
  void note(double error, double tolerated) {
    const double ratio = error / tolerated;
    worst_ = std::max(worst_, std::isnan(ratio) ? 1e9 : ratio);
  }
  double worst_ = 0;
};

/// `most` indices spread over [0, count), the first and last among them.
inline std::vector<std::int64_t> spread_indices(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> indices;
  if (count <= most) {
    for (std::int64_t i = 0; i < count; ++i) indices.push_back(i);
    return indices;
  }
  for (std::int64_t i = 0; i < most; ++i) indices.push_back(i * (count - 1) / (most - 1));
  return indices;
}

/// Block tables for `rotations` calls: blocks of the cache in random order, each table taking the
/// next ones, round and round. batch x kv_blocks_per_sequence a table.
std::vector<std::vector<std::int32_t>> block_tables(const Case& c, std::int64_t cache_blocks,
                                                    std::uint64_t seed, int rotations);

/// Seed of the noise that tokens are drawn with.
constexpr std::uint64_t kNoiseSeed = 0x5eed;

}  // namespace servesim::calibrate
