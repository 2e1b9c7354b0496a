/// Reads GPU profiles: models/hardware/*.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hardware/hardware_spec.hpp"

namespace servesim {

/// Names of the GPUs that ship, sorted.
std::vector<std::string> hardware_names();

/// The GPU called `name_or_path`: a shipped name, or a path to a profile. Throws InputError for
/// unknown names and keys, for a block without `source` and `kind` (datasheet | measured | fitted |
/// assumed), for rates and times that are zero, negative or absurd, and for efficiencies above 1.
HardwareSpec load_hardware(const std::string& name_or_path);

/// The spec in a parsed profile; `origin` is named in errors.
HardwareSpec hardware_from_json(const nlohmann::json& profile, const std::string& name,
                                const std::string& origin);

/// The blocks that calibration keeps (datasheet, host, elementwise, sampling, heat, memory
/// overhead); kernel blocks may be absent and are not read.
HardwareSpec hardware_without_kernels(const nlohmann::json& profile, const std::string& name,
                                      const std::string& origin);

/// Names of the blocks that calibration writes.
std::vector<std::string> kernel_block_names();

}  // namespace servesim
