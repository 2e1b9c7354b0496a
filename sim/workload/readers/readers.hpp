/// The formats, one per file of this folder. Each comment there says what the format means.
#pragma once

#include "workload/trace_format.hpp"

namespace servesim {

TraceFormat azure_format();
TraceFormat bailian_format();
TraceFormat burstgpt_format();
TraceFormat inference_perf_format();
TraceFormat llmservingsim_format();
TraceFormat mooncake_format();
TraceFormat schedule_case_format();
TraceFormat servesim_format();
TraceFormat sessions_format();
TraceFormat sharegpt_format();
TraceFormat splitwise_format();
TraceFormat timed_trace_format();
TraceFormat vidur_format();

/// Puts `request` back to "nothing stated", keeping its buffers.
inline void clear_request(Request& request, std::uint64_t index) {
  request.index = index;
  request.id.clear();
  request.session.clear();
  request.arrival = SimTime();
  request.closed_loop = false;
  request.delay = SimTime();
  request.priority = 0;
  request.hash_block = 0;
  request.hash_ids.clear();
}

}  // namespace servesim
