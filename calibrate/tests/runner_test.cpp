// A run on a backend that is made up: times, faults, interrupts.
#include "runner.hpp"

#include <chrono>
#include <map>
#include <thread>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

/// Answers a case's n as its time; remembers calls.
class FakeExperiment final : public Experiment {
 public:
  FakeExperiment(double us, double error, int& calls, bool slow)
      : us_(us), error_(error), calls_(calls), slow_(slow) {}
  double check() override { return error_; }
  double time_us(int calls) override {
    calls_ += calls;
    if (slow_) std::this_thread::sleep_for(std::chrono::milliseconds(4));
    return us_;
  }

 private:
  double us_, error_;
  int& calls_;
  bool slow_;
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
    if (c.k == 13) throw servesim::InputError("no algorithm");
    return std::make_unique<FakeExperiment>(static_cast<double>(c.n), c.k == 7 ? 3.0 : 0.1, calls,
                                            slow);
  }
  PowerSample sample_power() override { return {1000.0, 300.0, 50.0, {"software power cap"}}; }

  Environment environment_;
  int calls = 0;
  bool slow = false;
};

Plan fake_plan() {
  Plan p;
  for (const auto& [n, k] :
       std::map<std::int64_t, std::int64_t>{{10, 1}, {20, 7}, {30, 13}, {40, 2}}) {
    Case c;
    c.kernel = Kernel::kGemm;
    c.m = 1;
    c.n = n;
    c.k = k;
    p.cases.push_back(c);
  }
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
  Plan p;
  for (int i = 0; i < 60; ++i) {
    Case c;
    c.kernel = Kernel::kGemm;
    c.m = c.k = 1;
    c.n = 10 + i;
    p.cases.push_back(c);
  }
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
  Plan p;
  for (int i = 0; i < 60; ++i) {
    Case c;
    c.kernel = Kernel::kGemm;
    c.m = c.k = 1;
    c.n = 10 + i;
    p.cases.push_back(c);
  }
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
