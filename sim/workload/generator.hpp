/// Synthetic traces.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>

#include "workload/generate_spec.hpp"
#include "workload/request.hpp"

namespace servesim {

/// Makes `count` requests and hands each to `sink`, in the order and under the promises of
/// TraceReader. The same spec and seed give the same requests. Sessions stand whole, one after
/// another in the order of their first arrival; the last one may be cut short.
void generate(const GenerateSpec& spec, std::uint64_t count, std::uint64_t seed,
              const std::function<void(const Request&)>& sink);

/// The same as a trace in the servesim format. Its first line is a comment with the command.
void generate(const GenerateSpec& spec, std::uint64_t count, std::uint64_t seed, std::ostream& out);

/// Writes one request as a line of the servesim format.
void write_request(const Request& request, std::ostream& out);

}  // namespace servesim
