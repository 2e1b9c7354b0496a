/// Static batching: a batch is formed, runs until its last sequence has finished, and only then
/// makes room for the next one.
#pragma once

#include <vector>

#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// Replays `requests` under static batching; the configuration must have been validated.
Result run_static_batching(const Config& config, const std::vector<Request>& requests,
                           const Price& price);

}  // namespace servesim::oracle
