/// Watches a run for the report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/observer.hpp"
#include "report/binned_series.hpp"
#include "report/gap_histogram.hpp"
#include "report/run_series.hpp"

namespace servesim {

/// Keeps every n-th of what it is given, at most `most` in all: n doubles when they are full.
template <typename T>
class Thinned {
 public:
  explicit Thinned(std::size_t most) : most_(most) {}

  /// Whether the next one will be kept; if so, add() it.
  bool wants() { return seen_++ % every_ == 0; }
  void add(const T& value) {
    if (kept_.size() == most_) {
      for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
      kept_.resize((kept_.size() + 1) / 2);
      every_ *= 2;
      if ((seen_ - 1) % every_ != 0) return;
    }
    kept_.push_back(value);
  }
  const std::vector<T>& kept() const { return kept_; }
  std::int64_t every() const { return every_; }

 private:
  std::size_t most_;
  std::int64_t every_ = 1;
  std::int64_t seen_ = 0;
  std::vector<T> kept_;
};

/// Sizes of the curves of one run; those of many runs share a report.
struct SeriesDetail {
  std::size_t bins = 1024;         ///< of the engine's curves, at most; at least half are used
  std::size_t latency_bins = 256;  ///< at most
  std::size_t points = 2000;       ///< requests drawn singly, and steps of each kind, at most
  std::size_t quantiles = 256;     ///< of a distribution, at most twice as many

  /// For a report of `runs` runs.
  static SeriesDetail for_runs(std::size_t runs);
};

/// Turns the events of a run into RunSeries: 24 bytes per completed request, and a bounded rest.
class SeriesCollector : public Observer {
 public:
  explicit SeriesCollector(const SeriesDetail& detail);

  StepWatch watch(SimTime first_arrival) override;
  void on_request(const RequestRecord& record) override;
  void on_token_gaps(SimTime gap, std::int64_t count) override { itl_.add(gap, count); }
  void on_steps(const StepReport& report) override;
  void on_preempted(std::uint64_t index, SimTime at) override;
  void on_resumed(std::uint64_t index, SimTime at) override;
  void on_link(const LinkReport& report) override;

  /// The curves. The engine's columns are sums over replicas: decode_seqs, prefill_seqs (in a step
  /// that runs; 0 between steps), waiting (requests, preempted ones included), kv_used,
  /// kv_internal, kv_reserved, kv_external (tokens' worth of slots), prefill_tokens_per_s,
  /// decode_tokens_per_s, flops_per_s, hbm_bytes_per_s, busy (replicas that run a step) and the
  /// seconds of each Component per second, "time_NAME"; maxima: batch_max (of one replica).
  RunSeries finish();

 private:
  struct Done {
    float arrival_s, first_token_s, ttft_ms, tpot_ms, e2el_ms;
    std::uint32_t order;
  };
  struct Level {
    SimTime since;
    double used = 0, internal = 0, reserved = 0, external = 0;
  };
  struct Link {
    std::size_t channel;
    double bytes_per_s;
  };

  double since_start(SimTime time) const { return (time - origin_).seconds(); }
  void add_kv(const StepReport& report);
  void add_work(const StepReport& report);
  void sample(const StepReport& report);
  Cdf cdf_of(const std::string& name, std::vector<float> values) const;
  Cdf itl_cdf() const;
  LatencyOverTime latency_over_time();
  void add_latency_bins(OverTime& bins, float Done::*time) const;
  OverTime engine_curves();
  std::vector<double> shares(std::size_t count) const;

  SeriesDetail detail_;
  SimTime origin_;
  BinnedSeries bins_;
  std::vector<Level> levels_;  ///< by replica
  std::map<std::string, Link, std::less<>> links_;
  std::map<std::uint64_t, SimTime> preempted_;
  std::vector<Done> done_;
  GapHistogram itl_;
  Thinned<StepSample> decode_samples_, prefill_samples_;
};

}  // namespace servesim
