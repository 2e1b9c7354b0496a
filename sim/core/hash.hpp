/// Content hashes: of configurations (to name a run) and of traces.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace servesim {

/// 128-bit XXH3 of `bytes` as 32 hexadecimal digits.
std::string content_hash(std::string_view bytes);

/// Hash of a JSON document in canonical form: keys sorted, no white space, shortest round-trip
/// numbers.
std::string canonical_hash(const nlohmann::json& document);

}  // namespace servesim
