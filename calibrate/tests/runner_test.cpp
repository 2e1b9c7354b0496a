// A run on a backend that is made up: times, faults, interrupts.
#include "runner.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

/// Cases of FakeBackend are told apart by their k.
enum Fake : std::int64_t { kFine = 1, kWrong = 7, kRefused = 13, kDriverFault = 17, kFailsLater };

class FakeBackend;

/// Answers a case's n as its time; remembers calls.
class FakeExperiment final : public Experiment {
 public:
  FakeExperiment(const Case& c, FakeBackend& backend) : c_(c), backend_(backend) {}
  double check() override;
  double time_us(int calls) override;

 private:
  Case c_;
  FakeBackend& backend_;
};

class FakeBackend final : public Backend {
 public:
  const Environment& environment() const override { return environment_; }
  SuiteLimits limits() const override {
    SuiteLimits limits;
    limits.flops_per_s = limits.bytes_per_s = 1e15;
    limits.arena_bytes = 1e12;
    return limits;
  }
  std::unique_ptr<Experiment> prepare(const Case& c) override {
    if (c.k == kRefused) throw servesim::InputError("no algorithm");
    ++prepared[c.n];
    return std::make_unique<FakeExperiment>(c, *this);
  }
  PowerSample sample_power() override { return {1000.0, 300.0, 50.0, {"software power cap"}}; }

  Environment environment_;
  int calls = 0;
  int checks = 0;
  bool slow = false;
  bool slow_checks = false;
  std::map<std::int64_t, int> prepared;  ///< how often, by the case's n
};

double FakeExperiment::check() {
  ++backend_.checks;
  if (backend_.slow_checks) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  return c_.k == kWrong ? 3.0 : 0.1;
}

double FakeExperiment::time_us(int calls) {
  backend_.calls += calls;
  if (backend_.slow) std::this_thread::sleep_for(std::chrono::milliseconds(4));
  if (c_.k == kDriverFault || (c_.k == kFailsLater && backend_.prepared[c_.n] > 1)) {
    throw std::runtime_error("an illegal memory access");
  }
  return static_cast<double>(c_.n);
}

Case fake_gemm(std::int64_t us, Fake k = kFine) {
  Case c;
  c.kernel = Kernel::kGemm;
  c.m = 1;
  c.n = us;
  c.k = k;
  return c;
}

Plan fake_plan() {
  Plan p;
  p.cases = {fake_gemm(10), fake_gemm(20, kWrong), fake_gemm(30, kRefused), fake_gemm(40)};
  return p;
}

/// `count` GEMMs that take 10, 11, ... us.
Plan many_gemms(int count) {
  Plan p;
  for (int i = 0; i < count; ++i) p.cases.push_back(fake_gemm(10 + i));
  return p;
}

RunLimits fake_limits() {
  RunLimits limits;
  limits.effort.samples = 4;
  limits.effort.sustained_s = 0.02;
  limits.say = [](const std::string&) {};
  return limits;
}

}  // namespace

TEST_CASE("what was measured is reported, faults are left out with their reason", "[calibrate]") {
  FakeBackend backend;
  RunLimits limits = fake_limits();
  limits.effort.passes = 2;
  const Measurement m = run(backend, fake_plan(), limits);
  REQUIRE(m.timings.size() == 2);
  CHECK(m.timings[0].summary.us == Approx(10));
  CHECK(m.timings[1].summary.us == Approx(40));
  CHECK(m.timings[0].summary.samples == 8);
  CHECK(m.timings[0].summary.passes == 2);
  REQUIRE(m.left_out.size() == 2);
  CHECK(m.left_out[0].reason.find("wrong result") != std::string::npos);
  CHECK(m.left_out[1].reason == "no algorithm");
  CHECK_FALSE(m.interrupted);
}

TEST_CASE("a fault of the driver leaves out one kernel and keeps the others", "[calibrate]") {
  FakeBackend backend;
  RunLimits limits = fake_limits();
  std::vector<std::string> said;
  limits.say = [&](const std::string& line) { said.push_back(line); };
  Plan p;
  p.cases = {fake_gemm(10), fake_gemm(20, kDriverFault), fake_gemm(30)};
  const Measurement m = run(backend, p, limits);
  REQUIRE(m.timings.size() == 2);
  CHECK(m.timings[1].c.n == 30);
  REQUIRE(m.left_out.size() == 1);
  CHECK(m.left_out[0].c.n == 20);
  CHECK(m.left_out[0].reason == "an illegal memory access");
  CHECK_FALSE(m.interrupted);
  CHECK(std::count_if(said.begin(), said.end(), [](const std::string& line) {
          return line.find("n=20") != std::string::npos &&
                 line.find("illegal memory access") != std::string::npos;
        }) == 1);
}

TEST_CASE("a kernel that fails in a later pass keeps the samples of the earlier ones",
          "[calibrate]") {
  FakeBackend backend;
  RunLimits limits = fake_limits();
  limits.effort.passes = 3;
  Plan p;
  p.cases = {fake_gemm(10), fake_gemm(20, kFailsLater)};
  const Measurement m = run(backend, p, limits);
  REQUIRE(m.timings.size() == 2);
  CHECK(m.timings[1].summary.us == Approx(20));
  CHECK(m.timings[1].summary.passes == 1);
  CHECK(m.timings[0].summary.passes == 3);
  CHECK(m.left_out.empty());
  CHECK(backend.prepared[20] == 2);  // not tried again once it failed
}

TEST_CASE("each kernel is checked once, before its first samples, and never if wrong again",
          "[calibrate]") {
  FakeBackend backend;
  RunLimits limits = fake_limits();
  limits.effort.passes = 3;
  const Measurement m = run(backend, fake_plan(), limits);
  CHECK(backend.checks == 3);  // two that are right, one that is wrong; one was refused
  CHECK(backend.prepared[20] == 1);
  CHECK(m.timings.size() == 2);
}

TEST_CASE("a kernel that is first reached in a later pass is checked there", "[calibrate]") {
  FakeBackend backend;
  backend.slow_checks = true;
  RunLimits limits = fake_limits();
  limits.effort.passes = 2;
  limits.effort.setup_s = 0;
  limits.effort.sample_us = 0;
  limits.budget_s = 0.1;
  // The first pass has time for the plan alone, the second one for the wrong kernel too.
  Plan p;
  p.cases = {fake_gemm(10), fake_gemm(11)};
  p.left_out.push_back({fake_gemm(20, kWrong), kNoTime});
  const Measurement m = run(backend, p, limits);
  CHECK(m.timings.size() == 2);
  CHECK(backend.checks == 3);
  REQUIRE(m.left_out.size() == 1);
  CHECK(m.left_out[0].reason.find("wrong result") != std::string::npos);
}

TEST_CASE("a slow check does not cost samples", "[calibrate]") {
  FakeBackend backend;
  backend.slow_checks = true;
  RunLimits limits = fake_limits();
  limits.budget_s = 0.02;  // the check alone takes longer
  limits.effort.setup_s = 0;
  limits.effort.sample_us = 0;
  Plan p;
  p.cases = {fake_gemm(10)};
  const Measurement m = run(backend, p, limits);
  REQUIRE(m.timings.size() == 1);
  CHECK(m.timings[0].summary.samples == limits.effort.samples);
}

TEST_CASE("an interrupt before the first sample leaves a kernel out, not a number made of nothing",
          "[calibrate]") {
  for (const Kernel kernel : {Kernel::kGemm, Kernel::kSustainedGemm}) {
    FakeBackend backend;
    RunLimits limits = fake_limits();
    // True from the first call on: the check has passed, no sample is taken.
    limits.interrupted = [&] { return backend.calls > 0; };
    Plan p;
    p.cases = {fake_gemm(10), fake_gemm(11)};
    p.cases[0].kernel = kernel;
    const Measurement m = run(backend, p, limits);
    CHECK(m.interrupted);
    CHECK(m.timings.empty());
    CHECK(m.sustained.empty());
    REQUIRE(m.left_out.size() == 2);
    CHECK(m.left_out[0].reason == "interrupted");
    CHECK(m.left_out[1].reason == "interrupted");
  }
}

TEST_CASE("an interrupt keeps what was measured", "[calibrate]") {
  FakeBackend backend;
  RunLimits limits = fake_limits();
  limits.interrupted = [&] { return backend.calls > 1500; };
  Plan p = fake_plan();
  for (Case& c : p.cases) c.k = 1;
  limits.effort.sample_us = 3000;
  const Measurement m = run(backend, p, limits);
  CHECK(m.interrupted);
  CHECK(m.timings.size() + m.left_out.size() == 4);
  CHECK_FALSE(m.timings.empty());
  REQUIRE_FALSE(m.left_out.empty());
  CHECK(m.left_out.back().reason == "interrupted");
}

TEST_CASE("what a fit needs of every family comes first", "[calibrate]") {
  FakeBackend backend;
  RunLimits limits = fake_limits();
  Plan p = many_gemms(60);
  Case c;
  c.kernel = Kernel::kSoftmax;
  c.n = 5;
  p.cases.push_back(c);  // behind all GEMMs
  int measured = 0;
  // A GEMM takes 2 calls of warm-up, some to make a sample of, and 4 samples: an interrupt
  // half-way.
  limits.effort.sample_us = 0;
  limits.interrupted = [&] { return backend.calls > 6 * 45; };
  const Measurement m = run(backend, p, limits);
  REQUIRE(m.interrupted);
  bool softmax = false;
  for (const Timing& t : m.timings) {
    softmax = softmax || t.c.kernel == Kernel::kSoftmax;
    ++measured;
  }
  CHECK(softmax);
  CHECK(measured > static_cast<int>(fewest_of("gemm")));
  CHECK(measured < 61);
}

TEST_CASE("what a fit needs may overrun the budget, the rest may not", "[calibrate]") {
  FakeBackend backend;
  backend.slow = true;  // 4 ms a call, planned as next to nothing
  RunLimits limits = fake_limits();
  limits.effort.sample_us = 0;
  limits.effort.setup_s = 0;
  Plan p = many_gemms(60);
  limits.budget_s = 0.25;
  const Measurement m = run(backend, p, limits);
  CHECK(m.timings.size() == fewest_of("gemm"));
  CHECK(m.left_out.size() == 60 - fewest_of("gemm"));
  CHECK(m.left_out[0].reason == "time budget");
  CHECK(m.seconds < 0.25 * 2 + 0.2);
}

TEST_CASE("time that the plan did not need goes to what it left out", "[calibrate]") {
  FakeBackend backend;
  Plan p = fake_plan();
  Case c = p.cases[0];
  c.n = 77;
  p.left_out.push_back({c, kNoTime});
  c.n = 78;
  p.left_out.push_back({c, "memory"});
  const Measurement m = run(backend, p, fake_limits());
  REQUIRE(m.timings.size() == 3);
  CHECK(m.timings[2].summary.us == Approx(77));
  REQUIRE(m.left_out.size() == 3);
  CHECK(m.left_out[0].reason == "memory");
  CHECK(m.left_out[0].c.n == 78);
}

TEST_CASE("no time, no kernels", "[calibrate]") {
  FakeBackend backend;
  RunLimits limits = fake_limits();
  limits.budget_s = 0;
  const Measurement m = run(backend, fake_plan(), limits);
  CHECK(m.timings.empty());
  CHECK(m.left_out.size() == 4);
  CHECK(m.left_out[0].reason == "time budget");
}

TEST_CASE("a sustained GEMM leaves a series with clocks and power", "[calibrate]") {
  FakeBackend backend;
  Plan p;
  Case c;
  c.kernel = Kernel::kSustainedGemm;
  c.n = 50;
  c.m = c.k = 1;
  p.cases.push_back(c);
  const Measurement m = run(backend, p, fake_limits());
  REQUIRE(m.sustained.size() > 10);
  CHECK(m.sustained[0].us == Approx(50));
  CHECK(m.sustained[0].power.power_w == 300.0);
  REQUIRE(m.throttling.size() == 1);
  CHECK(m.throttling[0] == "software power cap");
  CHECK(m.timings.size() == 1);
}

TEST_CASE("short kernels are repeated to make a sample", "[calibrate]") {
  CHECK(calls_for(1000, 300) == 1);
  CHECK(calls_for(100, 300) == 3);
  CHECK(calls_for(7, 300) == 43);
  CHECK(calls_for(0, 300) == 200);
}
