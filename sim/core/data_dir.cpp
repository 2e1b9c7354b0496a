#include "core/data_dir.hpp"

#include <cstdlib>

namespace servesim {

std::string data_dir() {
  const char* chosen = std::getenv("SERVESIM_DATA");
  return chosen != nullptr ? chosen : SERVESIM_SOURCE_DIR;
}

}  // namespace servesim
