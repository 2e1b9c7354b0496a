/// Replays of loads through the real engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/simulation.hpp"
#include "cost/deployment.hpp"
#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// One request of a load. Requests of equal `prompt` (-1: none) share all of it, those of equal
/// `group` (-1: none) their first `group_tokens`.
struct LoadRequest {
  SimTime arrival;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t prompt = -1;
  std::int64_t group = -1;
  std::int64_t group_tokens = 0;
};

/// What one request saw, in milliseconds.
struct RequestLatency {
  double ttft_ms = 0;
  double e2e_ms = 0;
  double tpot_ms = 0;  ///< 0 for a single output
  bool completed = false;
};

/// A server: model, GPU, how it runs.
struct ServerSpec {
  ModelSpec model;
  HardwareSpec hardware;
  DeploymentSpec deployment;
  SchedulerConfig scheduler;
  bool front_end = true;  ///< whether latencies count the HTTP front end
};

/// One latency per request, in the load's order, from one replica with the `chunked` policy.
/// `end` receives when the last token came.
std::vector<RequestLatency> replay(const ServerSpec& server, const std::vector<LoadRequest>& load,
                                   SimTime* end = nullptr);

}  // namespace servesim
