/// The rule that ties the number of a request's hash ids to its length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "workload/field_text.hpp"
#include "workload/request.hpp"

namespace servesim {

/// Throws InputError, naming the block sizes that would fit, unless the request has
/// ceil(input / block) or floor(input / block) hash ids.
void check_hash_ids(const Request& request, const Location& where);

/// A hash id that is unique to the trace from one that is unique to the scope numbered `scope`.
std::uint64_t global_hash_id(std::uint64_t scope, std::uint64_t id);

}  // namespace servesim
