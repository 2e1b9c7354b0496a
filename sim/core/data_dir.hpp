/// Where the project's data (models/, workloads/) lies.
#pragma once

#include <string>

namespace servesim {

/// $SERVESIM_DATA when set, else the source tree the program was built from.
std::string data_dir();

}  // namespace servesim
