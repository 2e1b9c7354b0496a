// What a time budget has room for.
#include "planner.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

SuiteLimits planner_gpu() {
  SuiteLimits limits;
  limits.gpu = limits.fp8 = limits.int8 = true;
  limits.arena_bytes = 2e9;
  limits.flops_per_s = 200e12;
  limits.bytes_per_s = 1e12;
  return limits;
}

SuiteLimits planner_cpu() {
  SuiteLimits limits;
  limits.arena_bytes = 256e6;
  limits.flops_per_s = 60e9;
  limits.bytes_per_s = 10e9;
  return limits;
}

std::map<std::string, int> families(const std::vector<Case>& cases) {
  std::map<std::string, int> counts;
  for (const Case& c : cases) ++counts[family_of(c.kernel)];
  return counts;
}

}  // namespace

TEST_CASE("coarse to fine visits everything once, halves first", "[calibrate]") {
  CHECK(coarse_to_fine(8) == std::vector<std::size_t>{0, 4, 2, 6, 1, 5, 3, 7});
  for (const std::size_t n : {0u, 1u, 5u, 100u}) {
    const auto order = coarse_to_fine(n);
    CHECK(std::set<std::size_t>(order.begin(), order.end()).size() == n);
    CHECK(order.size() == n);
  }
}

TEST_CASE("a GPU's suite has every kernel that the model prices", "[calibrate]") {
  SuiteLimits limits = planner_gpu();
  const auto one = families(suite(limits));
  for (const char* family :
       {"bandwidth", "launch", "gemv", "gemm", "sustained_gemm", "decode_attention",
        "prefill_attention", "elementwise", "sampling", "copies"}) {
    INFO(family);
    CHECK(one.count(family) == 1);
  }
  CHECK(one.count("all_reduce") == 0);
  limits.devices = 4;
  limits.nccl = true;
  CHECK(families(suite(limits)).at("all_reduce") > 20);
  CHECK(families(suite(limits)).at("copies") > one.at("copies"));
}

TEST_CASE("a GPU without fp8 gets no fp8 GEMMs", "[calibrate]") {
  SuiteLimits limits = planner_gpu();
  limits.fp8 = false;
  bool int8 = false;
  for (const Case& c : suite(limits)) {
    CHECK(c.dtype != DType::kFp8);
    int8 = int8 || (c.kernel == Kernel::kGemm && c.dtype == DType::kInt8);
  }
  CHECK(int8);
}

TEST_CASE("a plan keeps to its budget and says what it left out", "[calibrate]") {
  for (const SuiteLimits& limits : {planner_gpu(), planner_cpu()}) {
    const auto all = suite(limits);
    double last = 0;
    for (const double budget : {5.0, 30.0, 120.0, 600.0}) {
      const Effort effort = effort_for(limits.gpu, budget);
      const Plan p = plan(all, limits, effort, budget);
      CHECK(p.cases.size() + p.left_out.size() == all.size());
      CHECK(static_cast<double>(p.cases.size()) >= last);
      last = static_cast<double>(p.cases.size());
      // What a fit needs of every family is always in.
      CHECK(families(p.cases).size() == families(all).size());
      double first = 0;
      std::map<std::string, std::size_t> seen;
      for (const Case& c : all) {
        if (seen[family_of(c.kernel)]++ < fewest_of(family_of(c.kernel))) {
          first += estimated_s(c, limits, effort);
        }
      }
      for (const auto& [family, count] : families(p.cases)) {
        INFO(family);
        CHECK(static_cast<std::size_t>(count) >= std::min(fewest_of(family), seen[family]));
      }
      CHECK(p.estimated_s <= budget + first);
      for (const LeftOut& out : p.left_out) CHECK_FALSE(out.reason.empty());
    }
  }
}

TEST_CASE("a long budget has room for everything that fits into memory", "[calibrate]") {
  SuiteLimits limits = planner_gpu();
  limits.arena_bytes = 200e6;
  const Plan p = plan(suite(limits), limits, effort_for(true, 1e5), 1e5);
  REQUIRE_FALSE(p.left_out.empty());
  for (const LeftOut& out : p.left_out) CHECK(out.reason == "memory");
  for (const Case& c : p.cases) CHECK(traffic(c) <= limits.arena_bytes);
  CHECK(plan_table(p).find("left out for memory") != std::string::npos);
}

TEST_CASE("a full GPU run is planned within ten minutes", "[calibrate]") {
  const SuiteLimits limits = planner_gpu();
  const Plan p = plan(suite(limits), limits, effort_for(true, 600), 450);
  CHECK(p.estimated_s <= 450);
  const auto counts = families(p.cases);
  CHECK(counts.at("gemm") > 300);
  CHECK(counts.at("decode_attention") > 40);
}

TEST_CASE("where others leave less of the cores, fewer kernels are planned", "[calibrate]") {
  SuiteLimits idle = planner_cpu();
  SuiteLimits busy = idle;
  busy.share = 0.2;
  const Effort effort = effort_for(false, 30);
  const auto all = suite(idle);
  const Plan alone = plan(all, idle, effort, 15), crowded = plan(all, busy, effort, 15);
  CHECK(crowded.cases.size() < alone.cases.size());
  CHECK(families(crowded.cases).size() == families(alone.cases).size());
  Case c;
  c.kernel = Kernel::kGemv;
  c.m = 1;
  c.n = c.k = 1024;
  CHECK(estimated_s(c, busy, effort) == Approx(5 * estimated_s(c, idle, effort)));
  // A long GEMM takes the seconds it is given, whoever else runs.
  c.kernel = Kernel::kSustainedGemm;
  CHECK(estimated_s(c, busy, effort) == Approx(estimated_s(c, idle, effort)));
}

TEST_CASE("a short plan has GEMVs of every type, and GEMMs of few and many rows", "[calibrate]") {
  for (SuiteLimits limits : {planner_cpu(), planner_gpu()}) {
    limits.share = limits.gpu ? 1 : 0.3;
    const Plan p = plan(suite(limits), limits, effort_for(limits.gpu, 30), limits.gpu ? 60 : 45);
    std::map<DType, int> types;
    std::set<std::int64_t> rows;
    for (const Case& c : p.cases) {
      if (c.kernel == Kernel::kGemv) ++types[c.dtype];
      if (c.kernel == Kernel::kGemm) rows.insert(c.m);
    }
    CHECK(types.size() == 4);
    for (const auto& [type, count] : types) {
      INFO(name_of(type));
      CHECK(count >= 3);
    }
    // Ten decode timings at the block size that a fit takes.
    CHECK(std::count_if(p.cases.begin(), p.cases.end(), [](const Case& c) {
            return c.kernel == Kernel::kDecodeAttention && c.block_size == 16;
          }) >= 10);
    REQUIRE_FALSE(rows.empty());
    CHECK(*rows.begin() == 1);
    CHECK(*rows.rbegin() >= 16);
  }
}

TEST_CASE("a plan is the same every time and keeps the suite's order", "[calibrate]") {
  const SuiteLimits limits = planner_gpu();
  const auto all = suite(limits);
  const Plan first = plan(all, limits, effort_for(true, 60), 50);
  const Plan second = plan(all, limits, effort_for(true, 60), 50);
  REQUIRE(first.cases.size() == second.cases.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < first.cases.size(); ++i) {
    CHECK(describe(first.cases[i]) == describe(second.cases[i]));
    while (at < all.size() && describe(all[at]) != describe(first.cases[i])) ++at;
    CHECK(at < all.size());
  }
}

TEST_CASE("a case's estimate grows with its size and with the passes", "[calibrate]") {
  const SuiteLimits limits = planner_cpu();
  Effort effort = effort_for(false, 60);
  Case c;
  c.kernel = Kernel::kGemm;
  c.m = 16;
  c.n = c.k = 2048;
  const double small = estimated_s(c, limits, effort);
  c.m = 256;
  CHECK(estimated_s(c, limits, effort) > small);
  effort.passes *= 2;
  CHECK(estimated_s(c, limits, effort) > 2 * small);
}

TEST_CASE("FLOPs and bytes of kernels are the textbook's", "[calibrate]") {
  Case c;
  c.kernel = Kernel::kGemm;
  c.m = 8;
  c.n = 128;
  c.k = 256;
  CHECK(flops(c) == 2.0 * 8 * 128 * 256);
  CHECK(traffic(c) == 2.0 * (128 * 256 + 8 * 256 + 8 * 128));
  c.kernel = Kernel::kGemv;
  c.dtype = DType::kInt4;
  CHECK(traffic(c) == 128 * 256 / 2 + 2 * 128 * 2 + 2 * (128 + 256));
  Case d;
  d.kernel = Kernel::kDecodeAttention;
  d.batch = 2;
  d.context = 100;
  d.heads = 8;
  d.kv_heads = 2;
  d.head_dim = 64;
  d.block_size = 16;
  CHECK(kv_blocks_per_sequence(d) == 7);
  CHECK(flops(d) == 4.0 * 2 * 100 * 8 * 64);
  CHECK(traffic(d) == 2.0 * 2 * 64 * (2 * 8 + 2 * 100 * 2));
}

TEST_CASE("a family's share that it does not use goes to the others", "[calibrate]") {
  const SuiteLimits limits = planner_cpu();
  const Effort effort = effort_for(false, 120);
  std::vector<Case> all = suite(limits);
  const Plan together = plan(all, limits, effort, 100);
  all.erase(
      std::remove_if(all.begin(), all.end(),
                     [](const Case& c) { return std::string(family_of(c.kernel)) != "gemm"; }),
      all.end());
  const Plan alone = plan(all, limits, effort, 100);
  CHECK(families(alone.cases).at("gemm") >= families(together.cases).at("gemm"));
  CHECK(alone.estimated_s <= 100);
  double used = 0;
  for (const Case& c : alone.cases) used += estimated_s(c, limits, effort);
  CHECK(alone.estimated_s == Approx(used));
}

TEST_CASE("memory is no matter of time", "[calibrate]") {
  SuiteLimits limits = planner_gpu();
  limits.arena_bytes = 300e6;
  for (const double budget : {10.0, 1e6}) {
    const Plan p = plan(suite(planner_gpu()), limits, effort_for(true, budget), budget);
    int large = 0;
    for (const LeftOut& out : p.left_out) large += out.reason == "memory" ? 1 : 0;
    CHECK(large > 10);  // the same ones, however long the budget
    for (const Case& c : p.cases) CHECK(traffic(c) <= 300e6);
  }
  // Blocks of a sequence are whole: 129 tokens take as much memory as 144.
  Case c;
  c.kernel = Kernel::kDecodeAttention;
  c.batch = 1;
  c.context = 129;
  c.heads = c.kv_heads = 8;
  c.head_dim = 128;
  c.block_size = 16;
  Case whole = c;
  whole.context = 144;
  limits.arena_bytes = traffic(whole) - 1;
  CHECK(traffic(c) < limits.arena_bytes);
  CHECK(plan({c}, limits, effort_for(true, 60), 60).left_out.size() == 1);
  limits.arena_bytes = traffic(whole);
  CHECK(plan({c}, limits, effort_for(true, 60), 60).cases.size() == 1);
}

TEST_CASE("a plan's table counts each family and why cases are out", "[calibrate]") {
  Plan p;
  Case c;
  c.kernel = Kernel::kGemm;
  p.cases = {c, c, c};
  p.left_out = {{c, kNoTime}, {c, kNoTime}, {c, "memory"}, {c, "wrong result"}};
  const std::string text = plan_table(p);
  CHECK(text.find("gemm") != std::string::npos);
  CHECK(text.find("3 measured, 2 left out for time, 1 left out for memory, 1 failed") !=
        std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);  // of other families there is nothing
  CHECK(plan_table({}).empty());
}

TEST_CASE("cores are timed in several passes, a GPU in one", "[calibrate]") {
  const Effort cpu = effort_for(false, 60), gpu = effort_for(true, 600);
  CHECK(cpu.passes == 3);
  CHECK(cpu.fastest);
  CHECK(gpu.passes == 1);
  CHECK_FALSE(gpu.fastest);
  CHECK(gpu.samples == 15);
  CHECK(gpu.sample_us == 300);
  CHECK(effort_for(true, 5).sustained_s == 0.5);
  CHECK(effort_for(true, 100).sustained_s == Approx(3));
  CHECK(effort_for(true, 1e5).sustained_s == 5);
}
