/// Writes hardware profiles.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "hardware/hardware_spec.hpp"

namespace servesim::calibrate {

/// What is said about every fitted block.
struct Provenance {
  std::string source;
  std::string kind;  ///< fitted | assumed
};

/// To five significant digits: finer than fits are good for.
double rounded(double value);

/// The kernel blocks of a set (gemm, gemm_8bit, ..., all_reduce), numbers to five digits.
/// `provenance` gives each block's, by its name.
nlohmann::ordered_json kernel_blocks(
    const KernelSet& set, const std::function<Provenance(const std::string&)>& provenance);

}  // namespace servesim::calibrate
