// What of the CUDA backend runs on the host: opening a GPU, its memory, and the driver's answers.
#include <dlfcn.h>
#include <unistd.h>

#include "core/error.hpp"
#include "cuda/nvml.hpp"
#include "cuda/opening.hpp"
#include "fake_nvml.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;
using namespace servesim::calibrate::cuda;

namespace {

template <class Try>
std::string opening_fault(const Try& attempt) {
  try {
    attempt();
  } catch (const servesim::InputError& error) {
    return error.what();
  }
  return {};
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// The fake library, reset; stays open, so that it keeps what it was told.
struct FakeDriver {
  FakeDriver() : file(dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(file != nullptr);
    answers = static_cast<FakeNvml*>(dlsym(file, "fake_nvml_answers"));
    REQUIRE(answers != nullptr);
    *answers = FakeNvml{};
  }
  ~FakeDriver() { dlclose(file); }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  Environment described() const {
    Environment e;
    e.backend = "cuda";
    Nvml("0000:1B:00.0", FAKE_NVML).describe(e);
    return e;
  }

  void* file;
  FakeNvml* answers = nullptr;
};

}  // namespace

TEST_CASE("a GPU that cannot be opened is refused with what to do", "[calibrate]") {
  const auto fault = [](const Findings& found, int device) {
    return opening_fault([&] { require_device(found, device); });
  };
  const std::string none = fault({0, 13000, false, 0}, 0);
  CHECK(says(none, "no GPU was found"));
  CHECK(says(none, "--backend cpu"));
  // Without a driver the runtime says "insufficient driver" too.
  CHECK(says(fault({0, 13000, true, 0}, 0), "no GPU was found"));
  const std::string old = fault({12020, 13000, true, 0}, 0);
  CHECK(says(old, "driver is too old"));
  CHECK(says(old, "supports CUDA 12.2"));
  CHECK(says(old, "built with CUDA 13.0"));
  CHECK(says(old, "update the driver"));
  CHECK(says(fault({13000, 13000, false, 0}, 0), "no GPU was found"));
  CHECK(says(fault({13000, 13000, false, 2}, 2), "--device 2: GPUs found: 2"));
  CHECK(fault({13000, 13000, false, 2}, 1).empty());
  // A driver newer than the toolkit is fine.
  CHECK(fault({13010, 12040, false, 1}, 0).empty());
}

TEST_CASE("GPUs before Ampere are refused by name", "[calibrate]") {
  const auto fault = [](int major, int minor) {
    return opening_fault([&] { require_capability("Tesla V100", major, minor); });
  };
  CHECK(says(fault(7, 0), "Tesla V100 has compute capability 7.0"));
  CHECK(says(fault(7, 5), "8.0 and later"));
  CHECK(fault(8, 0).empty());
  CHECK(fault(12, 1).empty());
}

TEST_CASE("regions of operands fit what is free and exceed L2", "[calibrate]") {
  constexpr double kGiB = 1 << 30, kMiB = 1 << 20;
  // 80 GB: capped.
  CHECK(region_bytes(79 * kGiB, 50 * kMiB) == std::int64_t{2} << 30);
  // 24 GB: 3/4 of 20 GiB over seven regions, 2.1 GiB, capped too.
  CHECK(region_bytes(20 * kGiB, 72 * kMiB) == std::int64_t{2} << 30);
  const std::int64_t small = region_bytes(8 * kGiB, 40 * kMiB);
  CHECK(7.0 * static_cast<double>(small) <= 0.75 * 8 * kGiB);
  CHECK(static_cast<double>(small) >= 256 * kMiB);
  CHECK(small % (1 << 20) == 0);
  // A large L2 lifts the cap.
  CHECK(region_bytes(200 * kGiB, 700 * kMiB) == std::int64_t{2800} << 20);
  for (const double l2 : {6 * kMiB, 50 * kMiB, 126 * kMiB}) {
    CHECK(static_cast<double>(region_bytes(16 * kGiB, l2)) >= 4 * l2);
  }
  const std::string fault = opening_fault([&] { region_bytes(1 * kGiB, 50 * kMiB); });
  CHECK(says(fault, "not enough GPU memory: 1.0 GiB are free"));
  CHECK(says(fault, "2.3 GiB are needed"));
  CHECK(opening_fault([&] { region_bytes(2.4 * kGiB, 50 * kMiB); }).empty());
}

TEST_CASE("the driver's answers become the environment's, units undone", "[calibrate]") {
  FakeDriver driver;
  driver.answers->limit_mw = 500'000;
  driver.answers->utilisation = 37;
  const Environment e = driver.described();
  CHECK(std::string(driver.answers->asked_for) == "0000:1B:00.0");
  CHECK(e.driver == "580.65.06");
  CHECK(e.clock_mhz == 1980.0);
  CHECK(e.memory_clock_mhz == 2619.0);
  CHECK(e.max_clock_mhz == 2010.0);
  CHECK(*e.power_limit_w == Approx(500));
  CHECK(*e.default_power_limit_w == Approx(700));
  CHECK(*e.power_w == Approx(120));
  CHECK(e.temperature_c == 41.0);
  CHECK(*e.utilisation == Approx(0.37));
  CHECK(e.ecc == true);
  CHECK(e.mig == false);  // as it is, not as it will be after a reset
  CHECK(driver.answers->shutdowns == 1);
  driver.answers->mig = 1;
  driver.answers->ecc = 0;
  CHECK(driver.described().mig == true);
  CHECK(driver.described().ecc == false);
}

TEST_CASE("processes that use the GPU are counted without this one", "[calibrate]") {
  FakeDriver driver;
  CHECK(driver.described().other_processes == 0);
  driver.answers->processes = 1;
  driver.answers->pids[0] = static_cast<unsigned>(getpid());
  CHECK(driver.described().other_processes == 0);
  CHECK(state_findings(driver.described()).empty());
  driver.answers->processes = 3;
  driver.answers->pids[1] = 11;
  driver.answers->pids[2] = 12;
  CHECK(driver.described().other_processes == 2);
  const auto found = state_findings(driver.described());
  REQUIRE(found.size() == 1);
  CHECK(found[0] == "busy GPU: other processes that use it: 2");
  // More than there is room for: the driver says how many.
  driver.answers->processes = 90;
  CHECK(driver.described().other_processes == 90);
}

TEST_CASE("throttling is sampled under the name that an older driver gives it", "[calibrate]") {
  FakeDriver driver;
  const Nvml nvml("0000:1B:00.0", FAKE_NVML);
  CHECK(nvml.sample().throttling.empty());
  driver.answers->throttle_mask = 0x4 | 0x40;
  const PowerSample now = nvml.sample();
  CHECK(now.throttling ==
        std::vector<std::string>{"software power cap", "hardware thermal slowdown"});
  CHECK(*now.power_w == Approx(120));
}

TEST_CASE("without the driver's library, or where it fails, all is unknown", "[calibrate]") {
  FakeDriver driver;
  driver.answers->init_status = 9;  // NVML_ERROR_DRIVER_NOT_LOADED
  CHECK_FALSE(driver.described().power_limit_w);
  CHECK_FALSE(driver.described().other_processes);
  Environment e;
  const Nvml absent("0000:1B:00.0", "libno-such-driver.so.1");
  absent.describe(e);
  CHECK(e.driver.empty());
  CHECK_FALSE(e.clock_mhz);
  CHECK_FALSE(e.utilisation);
  CHECK_FALSE(absent.sample().power_w);
}
