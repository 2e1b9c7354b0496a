#include "cost/server_defaults.hpp"

namespace servesim {

ServerDefaults server_defaults(double memory_bytes, bool is_a100) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  if (memory_bytes >= 160 * kGib) return {16384, 1024};
  if (memory_bytes >= 70 * kGib && !is_a100) return {8192, 1024};
  return {2048, 256};
}

}  // namespace servesim
