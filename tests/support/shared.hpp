/// The public traces, schedules and measurements that some tests check against.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "support/catch.hpp"

namespace servesim::testing {

/// The folder: $SERVESIM_SHARED, else ../shared beside the project. Absent: the test is to return,
/// which this says aloud; with SERVESIM_REQUIRE_SHARED=1 it fails instead.
inline std::optional<std::string> shared_dir() {
  const char* given = std::getenv("SERVESIM_SHARED");
  const std::string folder = given != nullptr ? given : SERVESIM_SHARED_DIR;
  if (std::filesystem::is_directory(folder)) return folder;
  const char* required = std::getenv("SERVESIM_REQUIRE_SHARED");
  if (required != nullptr && std::string(required) == "1") {
    FAIL("required data is missing: " << folder);
  }
  WARN("skipped: " << folder << " is not there");
  return std::nullopt;
}

}  // namespace servesim::testing
