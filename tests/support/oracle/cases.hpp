/// Reads recorded schedules: NAME.config.json, NAME.trace.jsonl and NAME.schedule.jsonl.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/oracle/types.hpp"

namespace servesim::oracle {

/// One recorded schedule.
struct Case {
  std::string name;
  Config config;
  std::vector<Request> requests;
  std::vector<LoggedStep> steps;
};

/// Reads a NAME.config.json file.
Config read_config(const std::filesystem::path& file);

/// Reads a NAME.trace.jsonl file; `default_hash_block` is the block size of the engine.
std::vector<Request> read_trace(const std::filesystem::path& file, std::int64_t default_hash_block);

/// Reads a NAME.schedule.jsonl file; an absent key is an empty value.
std::vector<LoggedStep> read_schedule(const std::filesystem::path& file);

/// Reads the three files of one case.
Case read_case(const std::filesystem::path& folder, const std::string& name);

/// The names of all cases of a folder, sorted; empty when there is no such folder.
std::vector<std::string> list_cases(const std::filesystem::path& folder);

}  // namespace servesim::oracle
