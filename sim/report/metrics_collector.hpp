/// Turns the events of a run into Metrics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/observer.hpp"
#include "report/gap_histogram.hpp"
#include "report/metrics.hpp"
#include "report/saturation.hpp"

namespace servesim {

/// Watches one run. Keeps 20 bytes per finished request (percentiles over requests are exact, from
/// single-precision milliseconds) and a histogram of token gaps.
class MetricsCollector : public Observer {
 public:
  explicit MetricsCollector(GoodputTargets targets = {}) : targets_(targets) {}

  /// Makes room for so many requests.
  void expect(std::size_t requests) {
    for (std::vector<float>* column : {&ttft_ms_, &tpot_ms_, &e2el_ms_}) column->reserve(requests);
    waits_.reserve(requests);
  }

  void on_request(const RequestRecord& record) override;
  void on_token_gaps(SimTime gap, std::int64_t count) override { itl_.add(gap, count); }

  /// Completed requests so far that met every target.
  std::int64_t good() const { return metrics_.good; }

  /// The metrics of all that was seen. Call once, at the end of the run.
  Metrics finish();

 private:
  using Reasons = std::map<std::string, std::int64_t, std::less<>>;
  static void count(Reasons& reasons, std::string_view reason);
  void add_completed(const RequestRecord& record);
  void add_wait(const RequestRecord& record);
  bool meets_targets(double ttft_ms, double tpot_ms, double e2el_ms) const;

  GoodputTargets targets_;
  Metrics metrics_;
  Reasons rejections_, unfinished_reasons_;
  std::vector<float> ttft_ms_, tpot_ms_, e2el_ms_;
  std::vector<QueueSample> waits_;
  GapHistogram itl_;
  SimTime first_arrival_ = SimTime::max();
  SimTime last_arrival_;
  SimTime last_token_;
};

/// TPOT in milliseconds; negative when the request had fewer than two output tokens.
double tpot_ms_of(const RequestRecord& record);
/// Output tokens the client received, or, where none were to come, those the trace asks for.
std::int64_t output_tokens_of(const RequestRecord& record);

/// Passes every event on to several observers.
class ObserverList : public Observer {
 public:
  void add(Observer& observer) { observers_.push_back(&observer); }
  std::size_t size() const { return observers_.size(); }
  void on_request(const RequestRecord& record) override {
    for (Observer* observer : observers_) observer->on_request(record);
  }
  void on_token_gaps(SimTime gap, std::int64_t count) override {
    for (Observer* observer : observers_) observer->on_token_gaps(gap, count);
  }
  /// All wishes in one: steps are told one by one between the first and the last of the windows.
  StepWatch watch(SimTime first_arrival) override;
  void on_steps(const StepReport& report) override {
    for (Observer* observer : observers_) observer->on_steps(report);
  }
  void on_preempted(std::uint64_t index, SimTime at) override {
    for (Observer* observer : observers_) observer->on_preempted(index, at);
  }
  void on_resumed(std::uint64_t index, SimTime at) override {
    for (Observer* observer : observers_) observer->on_resumed(index, at);
  }
  void on_link(const LinkReport& report) override {
    for (Observer* observer : observers_) observer->on_link(report);
  }
  void on_transfer(const TransferReport& report) override {
    for (Observer* observer : observers_) observer->on_transfer(report);
  }

 private:
  std::vector<Observer*> observers_;
};

}  // namespace servesim
