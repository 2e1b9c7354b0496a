/// Did the queue still grow when the trace ended?
#pragma once

#include <vector>

namespace servesim {

/// When one request arrived and how long it waited for its first step, both in seconds.
struct QueueSample {
  float arrival_s;
  float wait_s;
};

/// True when the run was overloaded, so that its latencies describe the length of the trace and not
/// the system. All of: the requests of the last quarter of arrivals waited on average at least 1.25
/// times as long as those of the second quarter (linear growth gives 2.3 times), and at least 1 %
/// of the time over which requests arrived; and when the last request arrived, at least 1 % of all
/// requests (and no fewer than five) were still waiting for their first step. Runs with fewer than
/// 40 requests, or whose requests all arrive at once, are not judged. Sorts `samples` by arrival.
bool is_saturated(std::vector<QueueSample>& samples);

}  // namespace servesim
