// What a check flags, and what it lets pass.
#include "check.hpp"

#include "hardware/hardware_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

Environment check_h100() {
  Environment e;
  e.backend = "cuda";
  e.device = "NVIDIA H100 80GB HBM3";
  e.memory_bytes = 85.0e9;
  e.units = 132;
  e.utilisation = 0;
  e.other_processes = 0;
  e.power_limit_w = e.default_power_limit_w = 700;
  return e;
}

bool flags(const std::vector<Finding>& findings, const char* word) {
  for (const Finding& f : findings) {
    if (f.what.find(word) != std::string::npos) return true;
  }
  return false;
}

TimedCase check_gemm(const HardwareSpec& profile, std::int64_t m, double factor) {
  TimedCase t;
  t.c.kernel = Kernel::kGemm;
  t.c.m = m;
  t.c.n = 6144;
  t.c.k = 4096;
  t.us = factor *
         predict_us(
             profile,
             MeasuredGemm{MeasuredEngine::kVllm, false, {static_cast<double>(m), 6144, 4096}, 0});
  return t;
}

TimedCase check_read(double bytes_per_s) {
  TimedCase t;
  t.c.kernel = Kernel::kRead;
  t.c.bytes = 1 << 30;
  t.us = static_cast<double>(t.c.bytes) / bytes_per_s * 1e6;
  return t;
}

}  // namespace

TEST_CASE("a machine as its profile has it raises nothing", "[calibrate]") {
  const HardwareSpec h100 = load_hardware("h100-sxm");
  CHECK(machine_findings(h100, check_h100()).empty());
  std::vector<TimedCase> timings{check_read(3.0e12)};
  for (const std::int64_t m : {16, 256, 8192}) timings.push_back(check_gemm(h100, m, 1.03));
  CHECK(timing_findings(h100, check_h100(), timings, 0.15).empty());
  const auto compared = compare(h100, timings);
  REQUIRE(compared.size() == 1);
  CHECK(compared[0].ratio == Approx(1.03));
  CHECK(compared[0].rows == 3);
}

TEST_CASE("another GPU's profile is told apart", "[calibrate]") {
  const Environment e = check_h100();
  const auto of_a100 = machine_findings(load_hardware("a100-sxm-80g"), e);
  REQUIRE_FALSE(of_a100.empty());
  CHECK(of_a100[0].other_machine);
  CHECK(flags(machine_findings(load_hardware("h100-pcie"), e), "another machine"));
  // Same SMs and memory, other name: the SXM part of the same chip.
  HardwareSpec renamed = load_hardware("h100-sxm");
  renamed.name = "h200-sxm";
  CHECK(flags(machine_findings(renamed, e), "wrong SKU"));
  renamed.name = "my-own-name";
  CHECK(machine_findings(renamed, e).empty());
  renamed.name = "h100-sxm-measured";
  CHECK(machine_findings(renamed, e).empty());
}

TEST_CASE("MIG, other users, throttling and a lowered limit are flagged", "[calibrate]") {
  const HardwareSpec h100 = load_hardware("h100-sxm");
  Environment e = check_h100();
  e.mig = true;
  CHECK(flags(machine_findings(h100, e), "MIG"));
  e = check_h100();
  e.utilisation = 0.6;
  CHECK(flags(machine_findings(h100, e), "busy GPU: 60 %"));
  e = check_h100();
  e.other_processes = 2;
  CHECK(flags(machine_findings(h100, e), "other processes that use it: 2"));
  e = check_h100();
  e.throttling = {"software power cap", "hardware slowdown"};
  CHECK(flags(machine_findings(h100, e), "throttling: software power cap"));
  CHECK(flags(machine_findings(h100, e), "throttling: hardware slowdown"));
  e = check_h100();
  e.power_limit_w = 500;
  const auto lowered = machine_findings(h100, e);
  CHECK(flags(lowered, "500 W of 700 W"));
  CHECK_FALSE(lowered[0].other_machine);
}

TEST_CASE("kernels off the profile and rates off the datasheet are flagged", "[calibrate]") {
  const HardwareSpec h100 = load_hardware("h100-sxm");
  const Environment e = check_h100();
  CHECK(flags(timing_findings(h100, e, {check_gemm(h100, 256, 1.3)}, 0.15), "1.30 times"));
  CHECK(flags(timing_findings(h100, e, {check_gemm(h100, 256, 0.7)}, 0.15), "0.70 times"));
  CHECK(flags(timing_findings(h100, e, {check_read(2.0e12)}, 0.15), "memory: 2000 GB/s"));
  CHECK(flags(timing_findings(h100, e, {check_read(4.5e12)}, 0.15), "wrong SKU"));
  TimedCase slow = check_gemm(h100, 8192, 1);
  slow.us *= 3;
  CHECK(flags(timing_findings(h100, e, {slow}, 0.15), "compute: the best GEMM"));
  CHECK(timing_findings(h100, e, {}, 0.15).empty());
}

TEST_CASE("a busy CPU is flagged at half its cores", "[calibrate]") {
  HardwareSpec cpu = load_hardware("h100-sxm");
  Environment e = check_h100();
  e.backend = "cpu";
  e.device = "CPU";
  e.utilisation = 0.4;
  CHECK(machine_findings(cpu, e).empty());
  e.utilisation = 0.9;
  CHECK(flags(machine_findings(cpu, e), "busy machine"));
}

TEST_CASE("relatives of a GPU are not taken for it", "[calibrate]") {
  HardwareSpec h200 = load_hardware("h200-sxm");
  Environment e = check_h100();
  e.device = "NVIDIA H200";
  e.memory_bytes = h200.memory_bytes;
  CHECK(machine_findings(h200, e).empty());
  // A GH200 says nothing of which shipped profile it is; its memory tells it apart.
  e.device = "NVIDIA GH200 480GB";
  CHECK(machine_findings(h200, e).empty());
  e.memory_bytes = 102e9;
  CHECK(flags(machine_findings(h200, e), "another machine"));
  e.device = "NVIDIA H20";
  e.memory_bytes = h200.memory_bytes;
  const auto found = machine_findings(h200, e);
  CHECK(flags(found, "wrong SKU: profile 'h200-sxm' on a GPU that is 'h20'"));
  CHECK(found[0].other_machine);
}

TEST_CASE("a machine that is off is still the machine", "[calibrate]") {
  Environment e = check_h100();
  e.mig = true;
  e.other_processes = 1;
  e.throttling = {"hardware slowdown"};
  const auto found = machine_findings(load_hardware("h100-sxm"), e);
  CHECK(found.size() == 3);
  for (const Finding& f : found) CHECK_FALSE(f.other_machine);
}

TEST_CASE("kernels are compared by family, GEMMs by type, others not at all", "[calibrate]") {
  const HardwareSpec h100 = load_hardware("h100-sxm");
  std::vector<TimedCase> timings;
  const auto add = [&](Kernel kernel, DType type, double us) {
    TimedCase t;
    t.c.kernel = kernel;
    t.c.dtype = type;
    t.c.m = 64;
    t.c.n = t.c.k = 4096;
    t.c.batch = 4;
    t.c.context = 1024;
    t.c.heads = 32;
    t.c.kv_heads = 8;
    t.c.head_dim = 128;
    t.c.block_size = 16;
    t.us = us;
    timings.push_back(t);
  };
  add(Kernel::kGemm, DType::kBf16, 10);
  add(Kernel::kGemm, DType::kFp8, 10);
  add(Kernel::kDecodeAttention, DType::kBf16, 20);
  add(Kernel::kPrefillAttention, DType::kBf16, 300);
  add(Kernel::kRmsNorm, DType::kBf16, 3);
  add(Kernel::kSiluMul, DType::kBf16, 4);
  add(Kernel::kRope, DType::kBf16, 3);
  add(Kernel::kSoftmax, DType::kFp32, 5);  // the profile has one number for all of sampling
  add(Kernel::kLaunch, DType::kBf16, 5);
  std::map<std::string, std::size_t> rows;
  for (const Comparison& c : compare(h100, timings)) {
    rows[c.kernel] = c.rows;
    CHECK(c.ratio > 0);
  }
  CHECK(rows == std::map<std::string, std::size_t>{{"decode_attention", 1},
                                                   {"elementwise", 3},
                                                   {"gemm bfloat16", 1},
                                                   {"gemm fp8", 1},
                                                   {"prefill_attention", 1}});
}

TEST_CASE("one slow kernel among many is no finding, most of them are", "[calibrate]") {
  const HardwareSpec h100 = load_hardware("h100-sxm");
  std::vector<TimedCase> timings;
  for (const std::int64_t m : {1, 4, 16, 64, 256}) timings.push_back(check_gemm(h100, m, 1.0));
  timings[0].us *= 3;
  CHECK(timing_findings(h100, check_h100(), timings, 0.15).empty());
  timings[1].us *= 3;
  timings[2].us *= 3;
  CHECK(flags(timing_findings(h100, check_h100(), timings, 0.15), "3.00 times"));
}
