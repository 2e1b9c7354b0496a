/// Request records for tests, in milliseconds.
#pragma once

#include "engine/observer.hpp"

namespace servesim::testing {

inline SimTime ms(double value) {
  return SimTime::from_seconds(value / 1000);
}

/// A completed request: arrives, is scheduled, gets its first and its last token at these times.
inline RequestRecord completed(std::uint64_t index, double arrival_ms, double scheduled_ms,
                               double first_ms, double last_ms, std::int64_t outputs) {
  RequestRecord record;
  record.index = index;
  record.arrival = ms(arrival_ms);
  record.scheduled = ms(scheduled_ms);
  record.first_token = ms(first_ms);
  record.last_token = ms(last_ms);
  record.input_tokens = 100;
  record.output_tokens = outputs;
  record.generated_tokens = outputs;
  record.replica = 0;
  return record;
}

inline RequestRecord not_completed(std::uint64_t index, double arrival_ms, RequestStatus status,
                                   std::string_view reason) {
  RequestRecord record;
  record.index = index;
  record.arrival = ms(arrival_ms);
  record.scheduled = record.first_token = record.last_token = SimTime(-1);
  record.input_tokens = 7;
  record.output_tokens = 9;
  record.status = status;
  record.reason = reason;
  return record;
}

}  // namespace servesim::testing
