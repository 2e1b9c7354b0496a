// The numbers in the tables: rates, shares and notes, computed by hand from one timing each.
#include "core/error.hpp"
#include "cost/csv_rows.hpp"
#include "folder.hpp"
#include "output.hpp"
#include "support/catch.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

Timing timed(Kernel kernel, double us) {
  Timing t;
  t.c.kernel = kernel;
  t.summary.us = us;
  t.summary.spread = 0.025;
  t.summary.samples = 15;
  t.summary.passes = 1;
  return t;
}

Environment values_environment() {
  Environment e;
  e.backend = "cuda";
  e.device = "NVIDIA H200";
  e.toolkit = "CUDA 13.0";
  e.gemm_library = "cuBLASLt 13.0.2";
  return e;
}

/// The one row of a table, by column.
class OnlyRow {
 public:
  explicit OnlyRow(const std::string& table) : csv_(folder_.write("t.csv", table)) {
    REQUIRE(csv_.size() == 1);
  }
  double number(const char* column) const {
    return csv_.number(0, csv_.column(column), -1e18, 1e18);
  }
  std::string text(const char* column) const { return csv_.text(0, csv_.column(column)); }

 private:
  fixtures::Folder folder_;
  CsvRows csv_;
};

}  // namespace

TEST_CASE("a GEMM's row has its rates, and a GEMV's names our kernel", "[calibrate]") {
  Measurement m;
  m.timings = {timed(Kernel::kGemm, 50)};
  m.timings[0].c.m = 256;
  m.timings[0].c.n = 4096;
  m.timings[0].c.k = 8192;
  const OnlyRow row(gemm_csv(m, values_environment(), Kernel::kGemm));
  CHECK(row.text("gpu") == "NVIDIA H200");
  CHECK(row.text("kernel") == "cuBLASLt 13.0.2");
  CHECK(row.text("dtype") == "bfloat16");
  CHECK(row.number("latency_us") == 50);
  CHECK(row.number("tflops") == Approx(2.0 * 256 * 4096 * 8192 / 50e-6 * 1e-12).epsilon(1e-3));
  const double bytes = 2.0 * (4096.0 * 8192 + 256.0 * 8192 + 256.0 * 4096);
  CHECK(row.number("gbps_min_traffic") == Approx(bytes / 50e-6 * 1e-9).epsilon(1e-3));
  CHECK(gemm_csv(m, values_environment(), Kernel::kGemv).find('\n') + 1 ==
        gemm_csv(m, values_environment(), Kernel::kGemv).size());  // a header alone
  m.timings[0].c.kernel = Kernel::kGemv;
  m.timings[0].c.m = 0;
  const OnlyRow gemv(gemm_csv(m, values_environment(), Kernel::kGemv));
  CHECK(gemv.text("kernel") == "own_gemv");
  CHECK(gemv.number("m") == 1);
}

TEST_CASE("attention's rows have the KV rate and the causal FLOP/s", "[calibrate]") {
  Measurement m;
  m.timings = {timed(Kernel::kDecodeAttention, 20)};
  Case& c = m.timings[0].c;
  c.batch = 4;
  c.context = 2048;
  c.heads = 32;
  c.kv_heads = 8;
  c.head_dim = 128;
  c.block_size = 16;
  const OnlyRow decode(decode_csv(m, values_environment()));
  CHECK(decode.number("ctx") == 2048);
  // K and V, two bytes each.
  CHECK(decode.number("kv_gbps") == Approx(4.0 * 4 * 2048 * 8 * 128 / 20e-6 * 1e-9).epsilon(1e-3));
  c.kernel = Kernel::kPrefillAttention;
  const OnlyRow prefill(prefill_csv(m, values_environment()));
  CHECK(prefill.number("isl") == 2048);
  CHECK(prefill.number("past_tokens") == 0);
  // Half of the square, two products of 2 operations.
  const double flop = 2.0 * 4 * 2048.0 * 2048 * 32 * 128;
  CHECK(prefill.number("causal_tflops") == Approx(flop / 20e-6 * 1e-12).epsilon(1e-3));
}

TEST_CASE("an all-reduce's bus bandwidth counts what each link carries", "[calibrate]") {
  Measurement m;
  m.timings = {timed(Kernel::kAllReduce, 100)};
  m.timings[0].c.gpus = 8;
  m.timings[0].c.bytes = 64 << 20;
  const OnlyRow row(collectives_csv(m, values_environment()));
  CHECK(row.number("n_gpus") == 8);
  CHECK(row.number("bytes") == 64 << 20);
  CHECK(row.number("busbw_GBps") == Approx((64 << 20) / 100e-6 * 1e-9 * 2 * 7 / 8).epsilon(1e-3));
}

TEST_CASE("elementwise rates are shares of the best read", "[calibrate]") {
  Measurement m;
  m.timings = {timed(Kernel::kSiluMul, 10)};
  m.timings[0].c.m = 1024;
  m.timings[0].c.n = 14336;
  const double bytes = 6.0 * 1024 * 14336;
  CHECK(OnlyRow(elementwise_csv(m, values_environment())).number("frac_bw") == 0);  // unknown
  for (const double us : {400.0, 300.0}) {
    m.timings.push_back(timed(Kernel::kRead, us));
    m.timings.back().c.bytes = 1'200'000'000;  // 4 TB/s at best
  }
  const OnlyRow row(elementwise_csv(m, values_environment()));
  CHECK(row.text("op") == "silu_mul");
  CHECK(row.number("bytes") == bytes);
  CHECK(row.number("frac_bw") == Approx(bytes / 10e-6 / 4e12).epsilon(1e-3));
}

TEST_CASE("micro.csv has each kind in its unit, with the spread", "[calibrate]") {
  const auto row_of = [](Timing t) {
    Measurement m;
    m.timings = {t};
    return micro_csv(m, values_environment(), {});
  };
  Timing t = timed(Kernel::kHostToDevice, 100);
  t.c.bytes = 5'000'000;
  const OnlyRow copy(row_of(t));
  CHECK(copy.text("kind") == "pcie");
  CHECK(copy.number("value") == Approx(50));
  CHECK(copy.text("unit") == "GB/s");
  CHECK(copy.text("note") == "spread 2.5 %");
  CHECK(copy.text("confidence") == "measured");
  t.c.kernel = Kernel::kPeerCopy;
  CHECK(OnlyRow(row_of(t)).text("kind") == "peer");
  const OnlyRow launch(row_of(timed(Kernel::kLaunch, 2.25)));
  CHECK(launch.text("unit") == "us");
  CHECK(launch.number("value") == 2.25);
  t = timed(Kernel::kSoftmax, 16);
  t.c.m = 4;
  t.c.n = 32000;
  CHECK(OnlyRow(row_of(t)).number("value") == Approx(16e3 / 128000));
  t = timed(Kernel::kPeakFma, 1000);
  t.c.n = 50'000'000;
  const OnlyRow peak(row_of(t));
  CHECK(peak.text("unit") == "GFLOP/s");
  CHECK(peak.number("value") == Approx(100));
}

TEST_CASE("timings.csv keeps what a summary says, unknown clocks stay empty", "[calibrate]") {
  Measurement m;
  m.timings = {timed(Kernel::kGemm, 12.3456)};
  m.timings[0].summary.least = 11;
  m.timings[0].summary.p90 = 15;
  m.timings[0].check = 0.25;
  const OnlyRow row(timings_csv(m));
  CHECK(row.number("latency_us") == 12.3456);
  CHECK(row.number("min_us") == 11);
  CHECK(row.number("p90_us") == 15);
  CHECK(row.number("spread") == 0.025);
  CHECK(row.number("samples") == 15);
  CHECK(row.number("check") == 0.25);
  m.sustained = {{0.5, 2000, {}}};
  const OnlyRow without(sustained_csv(m));
  CHECK(without.text("clock_mhz").empty());
  m.sustained[0].power.clock_mhz = 1755;
  m.sustained[0].power.power_w = 690;
  const OnlyRow with(sustained_csv(m));
  CHECK(with.number("clock_mhz") == 1755);
  CHECK(with.number("power_w") == 690);
  CHECK(with.text("temperature_c").empty());
}

TEST_CASE("what was left out is listed with reasons that hold commas", "[calibrate]") {
  Measurement m;
  LeftOut out;
  out.c.kernel = Kernel::kGemm;
  out.c.m = 4;
  out.reason = "cuBLASLt has no algorithm, for \"fp8\"";
  m.left_out = {out};
  const OnlyRow row(left_out_csv(m));
  CHECK(row.text("kernel") == "gemm");
  CHECK(row.text("case").find("m=4") != std::string::npos);
  CHECK(row.text("reason") == "cuBLASLt has no algorithm, for 'fp8'");
}

TEST_CASE("a folder is made, is taken as it is, and must be writable", "[calibrate]") {
  const fixtures::Folder folder;
  make_folder(folder / "a/b");
  CHECK(folder.names() == std::vector<std::string>{"a"});
  make_folder(folder / "a/b");
  folder.write("file", "");
  CHECK_THROWS_AS(make_folder(folder / "file/x"), InputError);
}
