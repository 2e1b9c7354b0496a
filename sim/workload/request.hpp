/// One request as a trace states it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/time.hpp"

namespace servesim {

/// Lengths, arrival and prefix identity of one request. Readers reuse its buffers.
struct Request {
  std::uint64_t index = 0;  ///< 0-based position in the trace
  std::string id;           ///< as the trace names it; empty when the format has none
  std::string session;      ///< session_id; empty: none
  SimTime arrival;  ///< since the first request of the trace; of no meaning when `closed_loop`
  bool closed_loop = false;  ///< starts `delay` after the end of its session's previous request
  SimTime delay;             ///< think time, see `closed_loop`
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int32_t priority = 0;  ///< lower is more urgent
  /// Token p of the prompt is the token hash_ids[p / hash_block]; tokens past the last id belong to
  /// this request alone. Ids are global to the trace (readers make local scopes global). 0: no
  /// prefix identity.
  std::int64_t hash_block = 0;
  std::vector<std::uint64_t> hash_ids;
};

}  // namespace servesim
