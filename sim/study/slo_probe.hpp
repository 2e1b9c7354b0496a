/// One run of a capacity search: metrics, and an end as soon as the target is out of reach.
#pragma once

#include <cstdint>

#include "cluster/simulation.hpp"
#include "report/metrics_collector.hpp"

namespace servesim {

/// Requests of a trace, and those that the model can serve under no configuration: longer than its
/// context, without input or without output.
struct TraceCount {
  std::int64_t requests = 0;
  std::int64_t unservable = 0;
};

/// How many requests must be good: at least `attainment` of those that count.
struct SloTarget {
  double attainment = 0.99;
  bool count_unservable = false;  ///< unservable requests count, as misses

  std::int64_t counted(const TraceCount& trace) const {
    return trace.requests - (count_unservable ? 0 : trace.unservable);
  }
  /// Misses that still meet the target.
  std::int64_t allowed_misses(const TraceCount& trace) const;
};

/// Requests that did not meet the targets, and why; one request may miss several.
struct SloMisses {
  std::int64_t good = 0;
  /// Completed, and over a target; or rejected, though servable; or given up or never finished,
  /// which count as rejected.
  std::int64_t missed = 0;
  std::int64_t unservable = 0;                              ///< rejected, by whatever configuration
  std::int64_t ttft = 0, tpot = 0, e2el = 0, rejected = 0;  ///< parts of `missed`

  /// Misses as `target` counts them.
  std::int64_t counted(const SloTarget& target) const {
    return missed + (target.count_unservable ? unservable : 0);
  }
};

/// Collects the metrics of a run and asks it to stop once more than `allowed_misses` have missed,
/// after which no outcome of the others can meet the target: the decision is exact.
class SloProbe final : public MetricsCollector {
 public:
  /// `context` is the longest sequence of the model, input and output.
  SloProbe(const GoodputTargets& targets, const SloTarget& target, std::int64_t allowed_misses,
           std::int64_t context, RunControl& control)
      : MetricsCollector(targets),
        targets_(targets),
        target_(target),
        allowed_misses_(allowed_misses),
        context_(context),
        control_(control) {}

  void on_request(const RequestRecord& record) override;

  const SloMisses& misses() const { return misses_; }
  bool abandoned() const { return abandoned_; }

 private:
  void count_miss(const RequestRecord& record);

  GoodputTargets targets_;
  SloTarget target_;
  std::int64_t allowed_misses_;
  std::int64_t context_;
  RunControl& control_;
  SloMisses misses_;
  bool abandoned_ = false;
};

/// Whether no configuration of a model with `context` positions can serve such a request. The
/// boundary is vLLM's: see rejection_reason().
bool is_unservable(std::int64_t input_tokens, std::int64_t output_tokens, std::int64_t context);

}  // namespace servesim
