// The list of kernels: real shapes, once each, within what machines and fits can take.
#include <algorithm>
#include <map>
#include <set>

#include "checking.hpp"
#include "planner.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

SuiteLimits suite_limits(bool gpu) {
  SuiteLimits limits;
  limits.gpu = limits.fp8 = limits.int8 = gpu;
  limits.devices = gpu ? 8 : 1;
  limits.nccl = gpu;
  limits.arena_bytes = 2e9;
  limits.flops_per_s = gpu ? 200e12 : 60e9;
  limits.bytes_per_s = gpu ? 1e12 : 10e9;
  return limits;
}

std::vector<Case> of_family(const std::vector<Case>& all, const std::string& family) {
  std::vector<Case> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](const Case& c) { return family_of(c.kernel) == family; });
  return some;
}

}  // namespace

TEST_CASE("no case is in a suite twice", "[calibrate]") {
  for (const bool gpu : {true, false}) {
    std::set<std::string> seen;
    for (const Case& c : suite(suite_limits(gpu))) {
      const std::string name = describe(c) + " " + name_of(c.dtype) + " " +
                               std::to_string(c.head_dim) + " " + std::to_string(c.n);
      INFO(name);
      CHECK(seen.insert(name).second);
    }
  }
}

TEST_CASE("every case says how much it moves or computes, but the empty kernels", "[calibrate]") {
  for (const bool gpu : {true, false}) {
    for (const Case& c : suite(suite_limits(gpu))) {
      INFO(describe(c));
      const bool empty = c.kernel == Kernel::kLaunch || c.kernel == Kernel::kGraph;
      CHECK((traffic(c) > 0 || flops(c) > 0) == !empty);
      CHECK_FALSE(describe(c).empty());
      CHECK(estimated_s(c, suite_limits(gpu), effort_for(gpu, 60)) > 0);
    }
  }
}

TEST_CASE("operands are whole vectors for the kernels of either backend", "[calibrate]") {
  for (const bool gpu : {true, false}) {
    for (const Case& c : suite(suite_limits(gpu))) {
      INFO(describe(c));
      const std::string family = family_of(c.kernel);
      if (family == "gemm" || family == "gemv" || family == "sustained_gemm") {
        CHECK(c.k % kInt4Group == 0);  // int4 scales, and 16-byte loads of every type
        CHECK(c.n % 16 == 0);          // columns of a tile
      } else if (family == "decode_attention" || family == "prefill_attention") {
        CHECK(c.head_dim == 128);
        CHECK(c.heads % c.kv_heads == 0);
        const auto group = c.heads / c.kv_heads;
        CHECK((!gpu || group == 1 || group == 4 || group == 8));  // what decode is built for
      } else if (family == "elementwise") {
        CHECK(c.n % 16 == 0);
        CHECK((!gpu || c.kernel != Kernel::kRmsNorm || c.n <= 8192));  // kept in registers
      } else if (family == "sampling") {
        CHECK(c.n % 4 == 0);
        CHECK(c.n > kTopK);
      }
    }
  }
}

TEST_CASE("GEMMs cover one row to a full prefill, and the same weights as GEMVs", "[calibrate]") {
  const auto all = suite(suite_limits(true));
  std::set<std::int64_t> rows;
  std::set<std::pair<std::int64_t, std::int64_t>> gemms, gemvs;
  std::map<DType, int> types;
  for (const Case& c : of_family(all, "gemm")) {
    rows.insert(c.m);
    gemms.insert({c.n, c.k});
    ++types[c.dtype];
  }
  for (const Case& c : of_family(all, "gemv")) gemvs.insert({c.n, c.k});
  CHECK(*rows.begin() == 1);
  CHECK(*rows.rbegin() == 16384);
  CHECK(gemms == gemvs);
  CHECK(gemms.count({28672, 4096}) == 1);   // gate and up of Llama 3 8B
  CHECK(gemms.count({128256, 4096}) == 1);  // its LM head
  REQUIRE(types.size() == 3);
  CHECK(types[DType::kBf16] == types[DType::kFp8]);
  CHECK(types[DType::kBf16] == types[DType::kInt8]);
}

TEST_CASE("all-reduces go over 2, 4 and 8 GPUs, peers need two", "[calibrate]") {
  SuiteLimits limits = suite_limits(true);
  std::set<std::int64_t> gpus;
  for (const Case& c : of_family(suite(limits), "all_reduce")) {
    gpus.insert(c.gpus);
    CHECK(c.bytes % 2 == 0);
  }
  CHECK(gpus == std::set<std::int64_t>{2, 4, 8});
  limits.devices = 1;
  CHECK(of_family(suite(limits), "all_reduce").empty());
  for (const Case& c : of_family(suite(limits), "copies")) CHECK(c.kernel != Kernel::kPeerCopy);
  limits.devices = 6;
  limits.nccl = false;
  CHECK(of_family(suite(limits), "all_reduce").empty());
}

TEST_CASE("the first cases of a family reach to both ends of its range", "[calibrate]") {
  for (const bool gpu : {true, false}) {
    const auto all = suite(suite_limits(gpu));
    for (const char* family : {"decode_attention", "prefill_attention"}) {
      INFO(family);
      const auto cases = of_family(all, family);
      const std::size_t few = fewest_of(family);
      REQUIRE(cases.size() > few);
      const auto larger = [](const Case& a, const Case& b) { return traffic(a) < traffic(b); };
      const auto [low, high] = std::minmax_element(cases.begin(), cases.end(), larger);
      const auto [first_low, first_high] = std::minmax_element(
          cases.begin(), cases.begin() + static_cast<std::ptrdiff_t>(few), larger);
      CHECK(traffic(*first_low) <= 8 * traffic(*low));
      CHECK(8 * traffic(*first_high) >= traffic(*high));
    }
  }
}

TEST_CASE("streams reach beyond any cache where memory allows, and no further", "[calibrate]") {
  SuiteLimits limits = suite_limits(true);
  double most = 0;
  for (const Case& c : of_family(suite(limits), "bandwidth")) {
    most = std::max(most, traffic(c));
    CHECK(c.kernel != Kernel::kPeakFma);
  }
  CHECK(most > 1e9);
  limits.arena_bytes = 300e6;
  for (const Case& c : of_family(suite(limits), "bandwidth")) CHECK(traffic(c) <= 300e6);
  const auto cpu = of_family(suite(suite_limits(false)), "bandwidth");
  CHECK(std::count_if(cpu.begin(), cpu.end(),
                      [](const Case& c) { return c.kernel == Kernel::kPeakFma; }) == 1);
}

TEST_CASE("a sample never has more calls than decode attention has tables", "[calibrate]") {
  Case c;
  c.kernel = Kernel::kDecodeAttention;
  c.batch = 1;
  c.context = 128;
  c.heads = 32;
  c.kv_heads = 8;
  c.head_dim = 128;
  c.block_size = 16;
  const PagedOperands o = paged_operands(c, std::int64_t{2} << 30, 1);
  CHECK(o.tables.size() > 200);
  // All tables together are more than the largest L2 there is.
  CHECK(static_cast<double>(o.tables.size()) * traffic(c) > 126e6);
}
