#include "runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>

#include "text.hpp"

namespace servesim::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Run {
 public:
  Run(Backend& backend, const Plan& plan, const RunLimits& limits)
      : backend_(backend), plan_(plan), limits_(limits), suite_(backend.limits()) {}

  Measurement all() {
    order();
    samples_.resize(cases_.size());
    checks_.resize(cases_.size(), 0);
    faults_.resize(cases_.size());
    for (int pass = 0; pass < limits_.effort.passes && !stopped(); ++pass) {
      limits_.say(print_to_string("pass %d of %d, %zu kernels", pass + 1, limits_.effort.passes,
                                  plan_.cases.size()));
      one_pass(pass);
    }
    gather();
    result_.seconds = seconds_since(start_);
    return std::move(result_);
  }

 private:
  bool stopped() {
    if (limits_.interrupted && limits_.interrupted()) result_.interrupted = true;
    return result_.interrupted;
  }

  /// First what a fit needs of every family, then the rest: a run cut short can still be fitted.
  /// Last what the plan had no room for, should its estimates have been too long.
  void order() {
    cases_ = plan_.cases;
    for (const LeftOut& out : plan_.left_out) {
      if (out.reason == kNoTime) {
        cases_.push_back(out.c);
      } else {
        result_.left_out.push_back(out);
      }
    }
    std::map<std::string, std::size_t> seen;
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
      const std::string family = family_of(plan_.cases[i].kernel);
      (seen[family]++ < fewest_of(family) ? order_ : rest).push_back(i);
    }
    needed_ = order_.size();
    order_.insert(order_.end(), rest.begin(), rest.end());
    for (std::size_t i = plan_.cases.size(); i < cases_.size(); ++i) order_.push_back(i);
  }

  /// How much longer than estimated each kernel of this pass may take, so that all are reached.
  double stretch(std::size_t from, int pass) const {
    double left = 0;
    for (std::size_t at = from; at < plan_.cases.size(); ++at) left += expected_s(order_[at]);
    if (left == 0) return 1;
    return std::max(end_of(pass) - seconds_since(start_), 0.0) / left;
  }
  double end_of(int pass) const { return limits_.budget_s * (pass + 1) / limits_.effort.passes; }
  double expected_s(std::size_t i) const {
    return estimated_s(cases_[i], suite_, limits_.effort) / limits_.effort.passes;
  }

  void one_pass(int pass) {
    const char* family = "";
    for (std::size_t at = 0; at < order_.size() && !stopped(); ++at) {
      const std::size_t i = order_[at];
      const Case& c = cases_[i];
      if (!faults_[i].empty()) continue;
      // What a fit needs may take twice the budget where others slow the machine.
      const bool planned = at < plan_.cases.size();
      const double budget_s =
          planned ? (pass == 0 && at < needed_ ? 2 : 1) * limits_.budget_s : end_of(pass);
      if (seconds_since(start_) + expected_s(i) > budget_s) continue;
      if (std::string(family_of(c.kernel)) != family) {
        family = family_of(c.kernel);
        limits_.say(print_to_string("  %s (%.0f s)", family, seconds_since(start_)));
      }
      try {
        if (c.kernel != Kernel::kSustainedGemm) {
          measure(i, expected_s(i) * stretch(at, pass));
        } else if (samples_[i].empty()) {
          sustain(i);
        }
      } catch (const std::exception& error) {  // a driver's faults too: the other kernels go on
        faults_[i] = error.what();
        limits_.say(describe(c) + ": " + error.what());
      }
    }
  }

  /// Checks a kernel before its first samples, in whatever pass they are taken.
  bool is_right(std::size_t i, Experiment& experiment) {
    if (!samples_[i].empty()) return true;
    checks_[i] = experiment.check();
    if (checks_[i] <= 1) return true;
    faults_[i] = print_to_string("wrong result: error %.3g times what is tolerated", checks_[i]);
    limits_.say(describe(cases_[i]) + ": " + faults_[i]);
    return false;
  }

  void measure(std::size_t i, double allotted_s) {
    const auto experiment = backend_.prepare(cases_[i]);
    if (!is_right(i, *experiment)) return;
    const Effort& effort = limits_.effort;
    const auto begin = Clock::now();  // a slow check does not cost samples
    experiment->time_us(1);           // warm-up
    const int calls = calls_for(experiment->time_us(1), effort.sample_us);
    if (calls > 1) experiment->time_us(calls);
    constexpr std::size_t kFewest = 2;
    std::vector<double> samples;
    while (static_cast<int>(samples.size()) < effort.samples && !stopped()) {
      if (samples.size() >= kFewest && seconds_since(begin) > allotted_s) break;
      samples.push_back(experiment->time_us(calls));
    }
    if (!samples.empty()) samples_[i].push_back(std::move(samples));
    if (seconds_since(polled_) < 1) return;
    polled_ = Clock::now();
    note(backend_.sample_power());
  }

  void note(const PowerSample& power) {
    for (const std::string& reason : power.throttling) {
      auto& all = result_.throttling;
      if (std::find(all.begin(), all.end(), reason) == all.end()) all.push_back(reason);
    }
  }

  void sustain(std::size_t i) {
    const auto experiment = backend_.prepare(cases_[i]);
    if (!is_right(i, *experiment)) return;
    const double one = experiment->time_us(1);
    const int calls = calls_for(one, 2000);
    if (calls > 1) experiment->time_us(calls);
    pause();
    const auto start = Clock::now();
    double polled_s = -1;
    std::vector<double> us;
    while (seconds_since(start) < limits_.effort.sustained_s && !stopped()) {
      const double begin = seconds_since(start);
      const double time = experiment->time_us(calls);
      SustainedPoint point{begin, time, {}};
      if (us.empty() || begin - polled_s > 0.05) {
        point.power = backend_.sample_power();
        note(point.power);
        polled_s = begin;
      }
      us.push_back(time);
      result_.sustained.push_back(point);
    }
    if (!us.empty()) samples_[i].push_back(us);
  }

  /// Lets clocks and power settle at rest before a sustained run.
  static void pause() {
    const auto start = Clock::now();
    while (seconds_since(start) < 0.5) {
      // Sleeping would let the host's clock fall too; what is to rest is the device.
    }
  }

  void gather() {
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      Summary summary = summarise(samples_[i]);
      if (limits_.effort.fastest) summary.us = summary.least;
      if (summary.samples > 0) {  // of passes before a fault too: wrong results leave none
        result_.timings.push_back({cases_[i], summary, checks_[i]});
        continue;
      }
      std::string reason = faults_[i];
      if (reason.empty() && i < plan_.cases.size() && result_.interrupted) reason = "interrupted";
      if (reason.empty()) reason = kNoTime;
      result_.left_out.push_back({cases_[i], reason});
    }
  }

  Backend& backend_;
  const Plan& plan_;
  const RunLimits& limits_;
  SuiteLimits suite_;
  Measurement result_;
  std::vector<std::vector<std::vector<double>>> samples_;
  std::vector<Case> cases_;         ///< the plan's, then those it had no time for
  std::vector<std::size_t> order_;  ///< in which cases_ are measured
  std::size_t needed_ = 0;          ///< how many of the first ones a fit needs
  std::vector<double> checks_;
  std::vector<std::string> faults_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point polled_ = start_;
};

}  // namespace

int calls_for(double us, double sample_us) {
  constexpr double kMostCalls = 200;
  return static_cast<int>(std::clamp(std::ceil(sample_us / std::max(us, 1e-3)), 1.0, kMostCalls));
}

Measurement run(Backend& backend, const Plan& plan, const RunLimits& limits) {
  return Run(backend, plan, limits).all();
}

}  // namespace servesim::calibrate
