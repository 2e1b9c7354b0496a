/// The machine-readable result, schema `servesim/result/v1` (docs/metrics.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/metrics.hpp"
#include "report/run_result.hpp"

namespace servesim {

/// The version of the program.
std::string version();

/// One run, as it stands in the document.
nlohmann::ordered_json run_json(const RunResult& result);
/// The figures of a run: all of its object but what names it, `warnings` and `sim`.
nlohmann::ordered_json metrics_json(const RunResult& result);
struct Cost;
nlohmann::ordered_json cost_json(const Cost& cost);
/// The targets that are set, in milliseconds.
nlohmann::ordered_json goodput_json(const GoodputTargets& targets);

/// The document for `runs`, two spaces of indentation, a final newline. Numbers are written as the
/// shortest decimals that read back exactly; figures without a sample are null. `comparison`, if
/// not null, stands under that key.
std::string result_json(const std::vector<RunResult>& runs, const std::string& command,
                        std::uint64_t seed, const nlohmann::ordered_json& comparison = nullptr);

}  // namespace servesim
