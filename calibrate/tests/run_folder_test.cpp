// Reading a measured folder: every fault is named with its file and line.
#include <fmt/format.h>

#include "core/error.hpp"
#include "folder.hpp"
#include "measured_profile.hpp"
#include "support/catch.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

const std::string kTimingsHeader =
    "kernel,dtype,m,n,k,batch,context,heads,kv_heads,head_dim,block_size,bytes,gpus,latency_us,"
    "min_us,p90_us,spread,samples,passes,check\n";
const std::string kGemmLine = "gemm,bfloat16,4,512,256,0,0,0,0,0,0,0,1,12.5,12,13,0.01,5,1,0.1\n";

template <class Read>
std::string folder_fault(const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::string timings_fault(const std::string& content) {
  const fixtures::Folder folder;
  const std::string path = folder.write("timings.csv", content);
  return folder_fault([&] { read_timings(path); });
}

std::string environment_fault(const std::string& content) {
  const fixtures::Folder folder;
  const std::string path = folder.write("environment.json", content);
  return folder_fault([&] { read_environment(path); });
}

bool names(const std::string& fault, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    if (fault.find(part) == std::string::npos) {
      UNSCOPED_INFO("'" << part << "' is not in: " << fault);
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("a line of timings is read with all its sizes", "[calibrate]") {
  const fixtures::Folder folder;
  const std::string path = folder.write(
      "timings.csv", kTimingsHeader + kGemmLine +
                         "decode_attention,bfloat16,0,0,0,3,100,8,2,128,16,0,1,7.5,7,8,0,5,1,0.2\n"
                         "all_reduce,float16,0,0,0,0,0,0,0,0,0,4096,4,9,9,9,0,5,1,0\n");
  const auto timings = read_timings(path);
  REQUIRE(timings.size() == 3);
  CHECK(timings[0].c.kernel == Kernel::kGemm);
  CHECK(timings[0].c.k == 256);
  CHECK(timings[0].us == 12.5);
  CHECK(timings[1].c.batch == 3);
  CHECK(timings[1].c.context == 100);
  CHECK(timings[1].c.kv_heads == 2);
  CHECK(timings[1].c.block_size == 16);
  CHECK(timings[2].c.gpus == 4);
  CHECK(timings[2].c.bytes == 4096);
  CHECK(timings[2].c.dtype == DType::kFp16);
}

TEST_CASE("faults of timings.csv are named with file, line and column", "[calibrate]") {
  CHECK(timings_fault(kTimingsHeader + kGemmLine).empty());
  CHECK(names(timings_fault(kTimingsHeader + kGemmLine + "gemm,bfloat16,4\n"),
              {"timings.csv:3", "3"}));
  std::string line = kGemmLine;
  line.replace(line.find("512"), 3, "51x");
  CHECK(names(timings_fault(kTimingsHeader + line), {"timings.csv:2", "n", "51x"}));
  line = kGemmLine;
  line.replace(line.find("12.5"), 4, "-1.5");
  CHECK(names(timings_fault(kTimingsHeader + line), {"timings.csv:2", "latency_us", "-1.5"}));
  line = kGemmLine;
  line.replace(line.find("12.5"), 4, "nan");
  CHECK(names(timings_fault(kTimingsHeader + line), {"timings.csv:2", "latency_us"}));
  CHECK(names(timings_fault(kTimingsHeader + "gemn" + kGemmLine.substr(4)),
              {"timings.csv", "unknown kernel 'gemn'"}));
  CHECK(names(timings_fault(kTimingsHeader + "gemm,bf16" + kGemmLine.substr(13)),
              {"timings.csv", "unknown dtype 'bf16'"}));
  std::string header = kTimingsHeader;
  header.replace(header.find("latency_us"), 10, "latency_ms");
  CHECK(names(timings_fault(header + kGemmLine), {"timings.csv", "latency_us"}));
  CHECK(names(timings_fault(""), {"timings.csv"}));
  CHECK(
      names(folder_fault([] { read_timings("/no/such/timings.csv"); }), {"/no/such/timings.csv"}));
}

TEST_CASE("a time of nothing is no time", "[calibrate]") {
  std::string line = kGemmLine;
  line.replace(line.find("12.5"), 4, "0.00");
  CHECK(names(timings_fault(kTimingsHeader + line), {"timings.csv:2", "latency_us"}));
}

TEST_CASE("an environment is read back, and what is none is refused", "[calibrate]") {
  Environment e;
  e.backend = "cuda";
  e.device = "NVIDIA H200";
  e.toolkit = "CUDA 13.0";
  e.memory_bytes = 150e9;
  e.free_bytes = 140e9;
  e.units = 132;
  e.cache_bytes = 50e6;
  e.ecc = true;
  e.mig = false;
  e.clock_mhz = 1980;
  e.power_limit_w = 700;
  e.utilisation = 0.25;
  e.throttling = {"software power cap"};
  const fixtures::Folder folder;
  const Environment back = read_environment(folder.write("environment.json", to_json(e)));
  CHECK(back.cuda());
  CHECK(back.device == e.device);
  CHECK(back.toolkit == e.toolkit);
  CHECK(back.memory_bytes == e.memory_bytes);
  CHECK(back.free_bytes == e.free_bytes);
  CHECK(back.units == 132);
  CHECK(back.cache_bytes == e.cache_bytes);
  CHECK(back.ecc == true);
  CHECK(back.mig == false);
  CHECK(back.clock_mhz == 1980.0);
  CHECK(back.power_limit_w == 700.0);
  CHECK(back.utilisation == 0.25);
  CHECK(back.throttling == e.throttling);
  CHECK_FALSE(back.max_clock_mhz);

  CHECK(names(environment_fault("[1, 2]"), {"environment.json", "not an environment"}));
  CHECK(names(environment_fault("{\"backend\": \"cpu\"}"), {"not an environment"}));
  CHECK(names(environment_fault("{\"backend\": 3, \"units\": 2}"), {"another type"}));
  CHECK(names(environment_fault("{\"backend\": \"cpu\", \"units\": \"two\"}"), {"another type"}));
  CHECK(names(environment_fault("{\"backend\": \"cpu\", \"units\": 2, \"throttling\": [1]}"),
              {"another type"}));
  CHECK(names(environment_fault("{\"backend\": "), {"environment.json"}));
}

TEST_CASE("a sustained run that slows is read with its time constant", "[calibrate]") {
  std::string text = "at_s,latency_us,clock_mhz,power_w,temperature_c\n";
  for (int i = 0; i < 200; ++i) {
    const double t = 0.01 * i;
    text += fmt::format("{:.4f},{:.3f},,,\n", t, 1100 - 100 * std::exp(-t / 0.1));
  }
  const fixtures::Folder folder;
  const Sustained s = read_sustained(folder.write("sustained.csv", text));
  CHECK(s.slows);
  CHECK(s.time_constant_s == Approx(0.1).epsilon(0.1));
  CHECK(s.ratio() == Approx(1000.0 / 1100).epsilon(0.01));
  const std::string bad = folder.write("bad.csv", "at_s,latency_us\n0,5\n0.1,soon\n");
  CHECK(names(folder_fault([&] { read_sustained(bad); }), {"bad.csv:3", "latency_us", "soon"}));
  CHECK_FALSE(read_sustained(folder.write("none.csv", "at_s,latency_us\n")).slows);
}

TEST_CASE("a GPU's datasheet is looked for before it is needed", "[calibrate]") {
  Environment e;
  e.backend = "cuda";
  e.device = "NVIDIA H100 80GB HBM3";
  CHECK(datasheet_of(e, "").find("h100-sxm.json") != std::string::npos);
  CHECK(datasheet_of(e, "a100-pcie").find("a100-pcie.json") != std::string::npos);  // by name
  const std::string path = std::string(SERVESIM_SOURCE_DIR) + "/models/hardware/l40s.json";
  CHECK(datasheet_of(e, path) == path);
  e.device = "NVIDIA GH200 480GB";
  CHECK(names(folder_fault([&] { datasheet_of(e, ""); }),
              {"no datasheet is known for 'NVIDIA GH200 480GB'", "--datasheet PROFILE"}));
  CHECK(names(folder_fault([&] { datasheet_of(e, "/no/such.json"); }), {"/no/such.json"}));
  const fixtures::Folder folder;
  for (const char* content : {"[]", "3", "{}", "{\"hbm\": 5}", "{\"hbm\": {\"bytes_per_s\": 1}}"}) {
    INFO(content);
    const std::string none = folder.write("none.json", content);
    CHECK(names(folder_fault([&] { datasheet_of(e, none); }), {"none.json"}));
  }
  e.backend = "cpu";
  CHECK(datasheet_of(e, "").empty());
}

TEST_CASE("what is no profile is refused where its blocks are read", "[calibrate]") {
  const fixtures::Folder folder;
  for (const char* content : {"[]", "\"hbm\"", "{", ""}) {
    INFO(content);
    const std::string path = folder.write("p.json", content);
    CHECK(names(folder_fault([&] { blocks_beside_kernels(path); }), {"p.json", "profile"}));
  }
  const std::string own = folder.write("own.json", "{\"hbm\": {\"a\": 1}, \"gemm\": {\"b\": 2}}");
  const auto blocks = blocks_beside_kernels(own);
  CHECK(blocks.contains("hbm"));
  CHECK_FALSE(blocks.contains("gemm"));
}
