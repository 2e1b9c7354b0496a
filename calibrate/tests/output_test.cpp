// The tables have the published columns, and what is written can be read back.
#include "output.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "cost/measured_kernels.hpp"
#include "folder.hpp"
#include "measured_profile.hpp"
#include "support/catch.hpp"
#include "support/shared.hpp"
#include "text.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

Timing output_timing(Kernel kernel, double us) {
  Timing t;
  t.c.kernel = kernel;
  t.c.m = 4;
  t.c.n = 512;
  t.c.k = 256;
  t.c.batch = 2;
  t.c.context = 64;
  t.c.heads = 8;
  t.c.kv_heads = 2;
  t.c.head_dim = 128;
  t.c.block_size = 16;
  t.c.bytes = 4096;
  t.c.gpus = 2;
  t.summary.us = us;
  t.summary.samples = 5;
  t.summary.passes = 1;
  return t;
}

Measurement output_measurement() {
  Measurement m;
  for (const Kernel kernel : {Kernel::kRead, Kernel::kGemm, Kernel::kGemv, Kernel::kDecodeAttention,
                              Kernel::kPrefillAttention, Kernel::kRmsNorm, Kernel::kSoftmax,
                              Kernel::kAllReduce, Kernel::kLaunch, Kernel::kHostToDevice}) {
    m.timings.push_back(output_timing(kernel, 12.5));
  }
  m.timings.push_back(output_timing(Kernel::kDecodeAttention, 99));
  m.timings.back().c.block_size = 32;
  m.sustained = {{0, 5, {}}, {0.1, 6, {1000.0, 300.0, 40.0, {}}}};
  m.left_out = {{m.timings[1].c, "time budget"}};
  return m;
}

Environment output_environment() {
  Environment e;
  e.backend = "cuda";
  e.device = "GPU, with a comma";
  e.toolkit = "CUDA 13.0";
  e.gemm_library = "cuBLASLt";
  e.units = 100;
  return e;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("what is written is read back by the fit's own readers", "[calibrate]") {
  const fixtures::Folder folder;
  write_measurement(folder.path(), output_measurement(), output_environment(), {});
  const auto in = [&](const char* name) { return folder.path() + "/" + name; };
  const auto gemms = read_gemms(in("gemm.csv"), "gpu, with");
  REQUIRE(gemms.size() == 1);
  CHECK(gemms[0].us == Approx(12.5));
  CHECK(gemms[0].shape.n == 512);
  CHECK_FALSE(gemms[0].eight_bit);
  CHECK(read_gemms(in("gemv.csv"), "").size() == 1);
  const auto decodes = read_decodes(in("attention_decode.csv"), "");
  REQUIRE(decodes.size() == 1);  // block size 16 only
  CHECK(decodes[0].context == 64);
  CHECK(read_prefills(in("attention_prefill.csv"), "").size() == 1);
  const auto reduces = read_all_reduces(in("collectives.csv"), "");
  REQUIRE(reduces.size() == 1);
  CHECK(reduces[0].engine == MeasuredEngine::kNccl);
  const auto timings = read_timings(in("timings.csv"));
  REQUIRE(timings.size() == 11);
  CHECK(timings[1].c.kernel == Kernel::kGemm);
  CHECK(timings[10].c.block_size == 32);
  CHECK(timings[10].us == Approx(99));
  CHECK(read_environment(in("environment.json")).device == "GPU, with a comma");
  CHECK_FALSE(read_sustained(in("sustained.csv")).slows);
  CHECK(read_text(in("left_out.csv")).find("time budget") != std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().extension() != ".tmp");
  }
}

TEST_CASE("tables have the columns of the published ones", "[calibrate]") {
  const auto folder = servesim::testing::shared_dir();
  if (!folder) return;
  const auto shared = [&](const char* name) {
    return first_line(read_text(*folder + "/measured/" + name));
  };
  const Measurement m = output_measurement();
  const Environment e = output_environment();
  const auto trimmed_line = [](std::string line) { return trimmed(line); };
  CHECK(first_line(gemm_csv(m, e, Kernel::kGemm)) == trimmed_line(shared("public_gemm.csv")));
  CHECK(first_line(decode_csv(m, e)) == trimmed_line(shared("public_attention_decode.csv")));
  CHECK(first_line(prefill_csv(m, e)) == trimmed_line(shared("public_attention_prefill.csv")));
  CHECK(first_line(collectives_csv(m, e)) == trimmed_line(shared("public_collectives.csv")));
  CHECK(first_line(elementwise_csv(m, e)) == trimmed_line(shared("elementwise_h100_vidur.csv")));
  CHECK(first_line(micro_csv(m, e, {})) == trimmed_line(shared("public_micro_and_claims.csv")));
}

TEST_CASE("host stand-ins are labelled as such, and absent when not measured", "[calibrate]") {
  const Measurement m = output_measurement();
  CHECK(micro_csv(m, output_environment(), {}).find("front end") == std::string::npos);
  const std::string text = micro_csv(m, output_environment(), {true, 1.5, 0.2, 0.1});
  CHECK(text.find("front end before,1.5,ms") != std::string::npos);
  CHECK(text.find("lower bound") != std::string::npos);
}

TEST_CASE("a folder that cannot be made and files that are not ours are refused", "[calibrate]") {
  CHECK_THROWS_AS(
      write_measurement("/proc/none/here", output_measurement(), output_environment(), {}),
      InputError);
  CHECK_THROWS_AS(write_file("/proc/none/x", "y"), InputError);
  const fixtures::Folder folder;
  std::filesystem::create_directories(folder.path());
  const std::string file = folder.path() + "/f";
  write_file(file, "kernel,dtype\nx,y\n");
  CHECK_THROWS_AS(read_timings(file), InputError);
  write_file(file, "{\"a\": 1}");
  CHECK_THROWS_AS(read_environment(file), InputError);
  write_file(file, "{\"backend\": \"cpu\", \"units\": 2, \"ecc\": \"yes\"}");
  CHECK_THROWS_AS(read_environment(file), InputError);
}
