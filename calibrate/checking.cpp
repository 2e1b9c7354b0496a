#include "checking.hpp"

#include <numeric>

namespace servesim::calibrate {

std::vector<std::vector<std::int32_t>> block_tables(const Case& c, std::int64_t cache_blocks,
                                                    std::uint64_t seed, int rotations) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(cache_blocks));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random_bits(seed, i) % i]);
  }
  std::vector<std::vector<std::int32_t>> tables;
  std::size_t next = 0;
  for (int r = 0; r < rotations; ++r) {
    std::vector<std::int32_t> table;
    for (std::int64_t i = 0; i < c.batch * kv_blocks_per_sequence(c); ++i) {
      table.push_back(order[next++ % order.size()]);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace servesim::calibrate
