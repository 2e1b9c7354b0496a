/// Changes of the load: other arrivals, another speed, fewer requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "workload/trace_reader.hpp"

namespace servesim {

struct LoadOptions {
  std::optional<double> request_rate;  ///< requests per second; infinity: all at time 0
  double burstiness = 1.0;             ///< shape of the gamma intervals; 1: Poisson
  double time_scale = 1.0;             ///< multiplies the trace's times and delays
  std::uint64_t num_prompts = 0;       ///< the first so many requests; 0: all
  std::uint64_t seed = 0;
};

/// Wraps `trace` in what `options` ask for, in the order: first N, time scale, request rate.
/// Throws InputError for a rate, burstiness or scale that is not positive, or not finite (a rate
/// may be infinite).
std::unique_ptr<TraceReader> apply_load(std::unique_ptr<TraceReader> trace,
                                        const LoadOptions& options);

/// Only the first `count` requests.
std::unique_ptr<TraceReader> take_first(std::unique_ptr<TraceReader> trace, std::uint64_t count);

/// Multiplies arrivals and delays by `scale` (> 0).
std::unique_ptr<TraceReader> scale_time(std::unique_ptr<TraceReader> trace, double scale);

/// Replaces arrivals, order kept, as `vllm bench serve` does: the intervals, also the one before
/// the first request, are gamma distributed with shape `burstiness` and mean 1/rate. Closed-loop
/// requests stay closed loop and take no interval.
std::unique_ptr<TraceReader> replace_arrivals(std::unique_ptr<TraceReader> trace,
                                              double requests_per_s, double burstiness,
                                              std::uint64_t seed);

}  // namespace servesim
