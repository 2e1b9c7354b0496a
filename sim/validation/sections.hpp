/// The sections of a validation; each adds its checks and points, or says what it skipped.
#pragma once

#include "validation/validation.hpp"

namespace servesim {

void check_kernels(const std::string& data_dir, ValidationReport& report);
void check_steps(const std::string& data_dir, ValidationReport& report);
void check_serving(const std::string& data_dir, const ValidationOptions& options,
                   ValidationReport& report);
void check_offline(const std::string& data_dir, ValidationReport& report);
void check_online(const std::string& data_dir, ValidationReport& report);
void check_transfers(const std::string& data_dir, ValidationReport& report);

}  // namespace servesim
