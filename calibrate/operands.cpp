#include "operands.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "reference.hpp"
#include "text.hpp"

namespace servesim::calibrate {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t whole_pages(std::int64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

std::vector<std::int32_t> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random_bits(seed, i) % i]);
  }
  return order;
}

}  // namespace

Operand after(Operand from, std::int64_t bytes) {
  from.offset += static_cast<std::uint64_t>(bytes);
  return from;
}

Operand operand_slot(const Operand& region, std::int64_t region_bytes, std::int64_t size,
                     std::int64_t rotation, std::int64_t from) {
  if (from + size > region_bytes) {
    throw InputError(print_to_string("an operand of %lld MiB does not fit into memory",
                                     static_cast<long long>(size >> 20)));
  }
  const std::int64_t step = whole_pages(size);
  const std::int64_t slots = std::max<std::int64_t>((region_bytes - from) / step, 1);
  return after(region, from + rotation % slots * step);
}

PagedOperands paged_operands(const Case& c, std::int64_t region_bytes, std::uint64_t seed) {
  const std::int64_t q_bytes = whole_pages(2 * c.batch * c.heads * c.head_dim);
  const std::int64_t block_bytes = 2 * c.block_size * c.kv_heads * c.head_dim;
  const std::int64_t blocks = (region_bytes - q_bytes) / 2 / block_bytes;
  PagedOperands operands;
  operands.q = {DType::kBf16, seed, 0};
  operands.k = after(operands.q, q_bytes);
  operands.v = after(operands.k, blocks * block_bytes);
  const std::vector<std::int32_t> order = shuffled(blocks, seed);
  const std::int64_t a_table = c.batch * kv_blocks_per_sequence(c);
  const std::int64_t tables =
      std::clamp<std::int64_t>((blocks + a_table - 1) / a_table, 2, kMostTables);
  std::size_t next = 0;
  for (std::int64_t t = 0; t < tables; ++t) {
    std::vector<std::int32_t>& table = operands.tables.emplace_back();
    for (std::int64_t i = 0; i < a_table; ++i) table.push_back(order[next++ % order.size()]);
  }
  return operands;
}

PromptOperands prompt_operands(const Case& c, const Operand& first) {
  const std::int64_t of_a_head = 2 * c.batch * c.context * c.head_dim;
  const Operand k = after(first, of_a_head * c.heads);
  return {first, k, after(k, of_a_head * c.kv_heads)};
}

std::int64_t prompt_bytes(const Case& c) {
  return 2 * c.batch * c.context * c.head_dim * (c.heads + 2 * c.kv_heads);
}

std::int64_t scale_bytes(const Case& c) {
  return 2 * c.n * (c.dtype == DType::kInt4 ? c.k / kInt4Group : 1);
}

std::vector<float> rope_table(const Case& c) {
  std::vector<float> table;
  const std::int64_t half = c.head_dim / 2;
  for (std::int64_t token = 0; token < c.m; ++token) {
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      const double angle = rope_angle(token, i % half, c.head_dim);
      table.push_back(static_cast<float>(i < half ? std::cos(angle) : std::sin(angle)));
    }
  }
  return table;
}

}  // namespace servesim::calibrate
