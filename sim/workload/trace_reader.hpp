/// Streaming readers of request traces.
#pragma once

#include "workload/request.hpp"

namespace servesim {

/// Yields the requests of a trace, one at a time.
class TraceReader {
 public:
  virtual ~TraceReader() = default;

  /// Reads the next request into `request`, reusing its buffers; false at the end of the trace.
  /// ENSURES: arrivals of requests that are not closed_loop never decrease; a session's requests
  /// keep their order. Throws InputError with file and line for anything malformed.
  virtual bool next(Request& request) = 0;
};

}  // namespace servesim
