// A run on a backend that is made up: times, faults, interrupts.
#include "runner.hpp"

#include <map>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

/// Answers a case's n as its time; remembers calls.
class FakeExperiment final : public Experiment {
 public:
  FakeExperiment(double us, double error, int& calls) : us_(us), error_(error), calls_(calls) {}
  double check() override { return error_; }
  double time_us(int calls) override {
    calls_ += calls;
    return us_;
  }

 private:
  double us_, error_;
  int& calls_;
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
    return std::make_unique<FakeExperiment>(static_cast<double>(c.n), c.k == 7 ? 3.0 : 0.1, calls);
  }
  PowerSample sample_power() override { return {1000.0, 300.0, 50.0, {"software power cap"}}; }

  Environment environment_;
  int calls = 0;
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
