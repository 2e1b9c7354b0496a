// Where operands lie: apart from each other, within their region, and out of caches.
#include "operands.hpp"

#include <set>

#include "core/error.hpp"
#include "reference.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

Case paged_case(std::int64_t batch, std::int64_t context, std::int64_t block_size) {
  Case c;
  c.kernel = Kernel::kDecodeAttention;
  c.batch = batch;
  c.context = context;
  c.heads = 8;
  c.kv_heads = 2;
  c.head_dim = 128;
  c.block_size = block_size;
  return c;
}

}  // namespace

TEST_CASE("operands of successive rotations do not share memory until the region is used up",
          "[calibrate]") {
  const Operand region{DType::kBf16, 3, 0};
  constexpr std::int64_t kRegion = 1 << 20;
  for (const std::int64_t size : {1, 4096, 5000, 300'000}) {
    INFO("size=" << size);
    const std::int64_t slots = std::max<std::int64_t>(kRegion / ((size + 4095) / 4096 * 4096), 1);
    std::set<std::uint64_t> seen;
    for (std::int64_t r = 0; r < slots; ++r) {
      const Operand slot = operand_slot(region, kRegion, size, r);
      CHECK(slot.offset % 4096 == 0);
      CHECK(slot.offset + static_cast<std::uint64_t>(size) <= kRegion);
      CHECK(seen.insert(slot.offset).second);
    }
    CHECK(operand_slot(region, kRegion, size, slots).offset == 0);  // round and round
  }
  CHECK(operand_slot(region, kRegion, 100, 5).type == DType::kBf16);
  CHECK(operand_slot(region, kRegion, 100, 5).seed == 3);
}

TEST_CASE("a slot keeps off what stands before it, and what does not fit is refused",
          "[calibrate]") {
  const Operand region{DType::kInt8, 1, 0};
  for (std::int64_t r = 0; r < 600; ++r) {
    CHECK(operand_slot(region, 1 << 21, 4096, r, 1 << 20).offset >= 1 << 20);
    CHECK(operand_slot(region, 1 << 21, 4096, r, 1 << 20).offset < 1 << 21);
  }
  CHECK_NOTHROW(operand_slot(region, 1 << 20, 1 << 20, 7));
  CHECK_THROWS_AS(operand_slot(region, 1 << 20, (1 << 20) + 1, 0), servesim::InputError);
  CHECK_THROWS_AS(operand_slot(region, 1 << 21, 1 << 20, 0, (1 << 20) + 1), servesim::InputError);
  CHECK_THROWS_WITH(operand_slot(region, 1 << 20, 5 << 20, 0),
                    "an operand of 5 MiB does not fit into memory");
}

TEST_CASE("queries, keys and values of decode attention lie one after the other", "[calibrate]") {
  for (const std::int64_t block_size : {8, 16, 32}) {
    const Case c = paged_case(3, 100, block_size);
    constexpr std::int64_t kRegion = 4 << 20;
    const PagedOperands o = paged_operands(c, kRegion, 9);
    CHECK(o.q.offset == 0);
    CHECK(o.k.offset >= static_cast<std::uint64_t>(2 * c.batch * c.heads * c.head_dim));
    std::int32_t last = 0;
    for (const auto& table : o.tables) {
      CHECK(table.size() == static_cast<std::size_t>(c.batch * kv_blocks_per_sequence(c)));
      for (const std::int32_t block : table) last = std::max(last, block);
    }
    const auto block_bytes = static_cast<std::uint64_t>(2 * c.block_size * c.kv_heads * c.head_dim);
    const std::uint64_t used = (static_cast<std::uint64_t>(last) + 1) * block_bytes;
    CHECK(o.k.offset + used <= o.v.offset);
    CHECK(o.v.offset + used <= kRegion);
  }
}

TEST_CASE("block tables name each block once until all are used", "[calibrate]") {
  const Case c = paged_case(4, 40, 16);
  const PagedOperands o = paged_operands(c, 3 << 20, 1);
  const std::size_t a_table = 12;
  std::set<std::int32_t> used;
  std::size_t named = 0;
  const auto blocks = static_cast<std::size_t>((o.v.offset - o.k.offset) / (2 * 16 * 2 * 128));
  for (const auto& table : o.tables) {
    REQUIRE(table.size() == a_table);
    for (const std::int32_t block : table) {
      if (named++ < blocks) CHECK(used.insert(block).second);
    }
  }
  CHECK(used.size() == blocks);  // rotations read the whole region
  CHECK(*used.begin() == 0);
  CHECK(*used.rbegin() + 1 == static_cast<std::int32_t>(blocks));
}

TEST_CASE("little context rotates over as many tables as a sample has calls", "[calibrate]") {
  const PagedOperands small = paged_operands(paged_case(1, 128, 16), 512 << 20, 1);
  CHECK(small.tables.size() == static_cast<std::size_t>(kMostTables));
  CHECK(kMostTables > 200);  // calls_for() goes no higher
  std::set<std::int32_t> used;
  for (const auto& table : small.tables) used.insert(table.begin(), table.end());
  CHECK(used.size() == 8 * small.tables.size());
  // Where all sequences hardly fit, two tables still differ.
  const Case large = paged_case(16, 2048, 16);
  const PagedOperands tight = paged_operands(large, 36 << 20, 1);
  REQUIRE(tight.tables.size() == 2);
  CHECK(tight.tables[0] != tight.tables[1]);
}

TEST_CASE("blocks are in random order, the same for the same seed", "[calibrate]") {
  const Case c = paged_case(2, 512, 16);
  const auto first = paged_operands(c, 8 << 20, 5).tables;
  CHECK(first == paged_operands(c, 8 << 20, 5).tables);
  CHECK(first != paged_operands(c, 8 << 20, 6).tables);
  int in_order = 0;
  for (std::size_t i = 1; i < first[0].size(); ++i) in_order += first[0][i] == first[0][i - 1] + 1;
  CHECK(in_order < 8);  // a cache's prefetcher gains nothing
}

TEST_CASE("operands of a prompt are as large as their heads", "[calibrate]") {
  Case c = paged_case(2, 64, 16);
  c.kernel = Kernel::kPrefillAttention;
  const PromptOperands o = prompt_operands(c, {DType::kBf16, 1, 8192});
  CHECK(o.q.offset == 8192);
  CHECK(o.k.offset - o.q.offset == 2 * 2 * 64 * 128 * 8);
  CHECK(o.v.offset - o.k.offset == 2 * 2 * 64 * 128 * 2);
  CHECK(prompt_bytes(c) == 2 * 2 * 64 * 128 * (8 + 2 + 2));
}

TEST_CASE("scales are one a row of int8, one a group of int4", "[calibrate]") {
  Case c;
  c.n = 48;
  c.k = 512;
  c.dtype = DType::kInt8;
  CHECK(scale_bytes(c) == 2 * 48);
  c.dtype = DType::kInt4;
  CHECK(scale_bytes(c) == 2 * 48 * 4);
}

TEST_CASE("a token's cosines come before its sines", "[calibrate]") {
  Case c;
  c.m = 5;
  c.head_dim = 16;
  const auto table = rope_table(c);
  REQUIRE(table.size() == 80);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(table[i] == 1);
    CHECK(table[8 + i] == 0);
    const double angle = 4 * std::pow(10000.0, -static_cast<double>(i) / 8);
    CHECK(table[4 * 16 + i] == Approx(std::cos(angle)));
    CHECK(table[4 * 16 + 8 + i] == Approx(std::sin(angle)));
  }
  CHECK(rope_angle(4, 3, 16) == Approx(4 * std::pow(10000.0, -3.0 / 8)));
}
