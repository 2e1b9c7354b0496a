#include "core/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

namespace servesim {

std::string content_hash(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string canonical_hash(const nlohmann::json& document) {
  return content_hash(document.dump());  // nlohmann::json keeps its keys sorted
}

}  // namespace servesim
