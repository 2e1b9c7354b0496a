/// The numbers `vllm bench serve` reports, from the fates of requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/observer.hpp"

namespace servesim {

/// Mean and percentiles in milliseconds; absent when there was no sample.
struct SampleSummary {
  std::int64_t count = 0;
  double mean = 0, median = 0, std = 0, p90 = 0, p95 = 0, p99 = 0;
};

struct Metrics {
  std::int64_t total = 0, completed = 0, rejected = 0, unfinished = 0;
  double duration_s = 0;                                         ///< first arrival to last token
  std::int64_t total_input_tokens = 0, total_output_tokens = 0;  ///< of completed requests
  std::int64_t good = 0;  ///< completed requests that met every goodput target
  bool has_goodput = false;
  SampleSummary ttft_ms, tpot_ms, itl_ms, e2el_ms;
  bool saturated = false;    ///< the queue still grew when the trace ended (report/saturation.hpp)
  bool all_at_once = false;  ///< every request arrived at the same instant
  std::vector<std::pair<std::string, std::int64_t>> rejections;          ///< reason -> count
  std::vector<std::pair<std::string, std::int64_t>> unfinished_reasons;  ///< likewise
};

/// Latency targets; a request is good when it meets all that are set.
struct GoodputTargets {
  std::optional<double> ttft_ms, tpot_ms, e2el_ms;
};

}  // namespace servesim
