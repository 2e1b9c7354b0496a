/// The oracle engine: runs a trace step by step, one block at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// Thrown after far more steps than the trace can need. The semantics do allow endless preemption:
/// sequences with the same priority and arrival, admitted without room for all they know, can
/// preempt each other in turn for ever.
class NoProgress : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Replays `requests` and returns everything that happened; throws std::invalid_argument on a
/// configuration that cannot be run, NoProgress when there is no end, and std::logic_error when an
/// invariant breaks.
Result run(const Config& config, const std::vector<Request>& requests, const Price& price);

/// The linear step time of the recorded schedules: base + per_token * tokens, 0 for an empty step.
Price linear_price(std::int64_t base_us, std::int64_t per_token_us);

/// The linear step time which the configuration asks for.
Price linear_price(const Config& config);

/// Why this request can never be served, or nothing when it can be.
std::optional<std::string> never_fits(const Config& config, const Request& request);

/// The length at which a request stops: all its output, or the model's limit.
std::int64_t final_length(const Config& config, const Request& request);

/// Extra slots allocated past the scheduled tokens (the drafter writes there).
std::int64_t lookahead_tokens(const Config& config);

/// Blocks that a sequence of so many tokens holds: a group with a window gives none back without
/// taking a new one, so it holds as many as its window ever touched.
std::int64_t blocks_of(const Config& config, std::int64_t tokens);

}  // namespace servesim::oracle
