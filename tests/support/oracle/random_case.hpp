/// Small random engines and traces for property tests, the same on every platform.
#pragma once

#include <cstdint>
#include <vector>

#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// An engine and a trace to run on it.
struct RandomCase {
  Config config;
  std::vector<Request> requests;
};

/// A continuous-batching case: small pools that preempt, shared prefixes, equal arrivals, single
/// outputs, requests that never fit, sequences cut at the model's length.
RandomCase random_case(std::uint64_t seed);

/// The same traces on a pipeline of 2 to 5 stages, without speculation.
RandomCase random_pipeline_case(std::uint64_t seed);

/// The same traces under static batching.
RandomCase random_static_case(std::uint64_t seed);

}  // namespace servesim::oracle
