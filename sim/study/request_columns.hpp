/// Latencies of single requests, kept so that the same request can be compared between two runs.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/observer.hpp"

namespace servesim {

/// Twelve bytes per request, by its position in the trace; NaN where there is no figure.
class RequestColumns final : public Observer {
 public:
  void on_request(const RequestRecord& record) override;

  const std::vector<float>& ttft_ms() const { return ttft_ms_; }
  const std::vector<float>& tpot_ms() const { return tpot_ms_; }
  const std::vector<float>& e2el_ms() const { return e2el_ms_; }

  static constexpr std::uint64_t kBytesPerRequest = 3 * sizeof(float);

 private:
  std::vector<float> ttft_ms_, tpot_ms_, e2el_ms_;
};

/// How a figure of the same requests changed from one run to another.
struct PairedDifference {
  std::int64_t pairs = 0;             ///< requests that have the figure in both runs
  double median_ms = 0;               ///< of (other - base)
  double improved = 0, worsened = 0;  ///< shares of the pairs; the rest did not change
};

/// Pairs the requests of two runs of one trace. All 0 when there is no pair.
PairedDifference paired_difference(const std::vector<float>& base, const std::vector<float>& other);

}  // namespace servesim
