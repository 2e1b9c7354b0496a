/// What a synthetic trace is made of. Specs are data: workloads/specs/NAME.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workload/sampler.hpp"

namespace servesim {

/// When requests, or sessions where there are some, arrive.
struct ArrivalSpec {
  enum class Process { kPoisson, kGamma, kConstant, kAllAtOnce };

  Process process = Process::kPoisson;
  double rate_per_s = 1.0;
  double burstiness = 1.0;  ///< shape of the gamma intervals: 1 / (coefficient of variation)^2
};

/// Prompts that start like earlier ones. The first `system_tokens` are the same in all prompts of a
/// group; beyond them a request shares a prefix with an earlier one with some probability.
struct PrefixSpec {
  std::int64_t block_tokens = 512;
  std::int64_t groups = 1;
  std::int64_t system_tokens = 0;
  double reuse_probability = 0;
  Distribution reused_fraction;  ///< of the blocks of the prompt
  Distribution reuse_distance;   ///< how many requests back the earlier one is
};

/// Requests in closed-loop sessions with a growing context. A turn whose input would shrink is a
/// compaction: of what went before only the system prompt remains.
struct SessionSpec {
  Distribution turns;
  Distribution growth_tokens;  ///< added to the input from turn to turn
  double compaction_probability = 0;
  Distribution think_s;  ///< from the end of a turn to the start of the next
};

struct GenerateSpec {
  std::string name;
  std::string description;
  ArrivalSpec arrivals;
  Distribution input_tokens;  ///< of a request; with sessions: of their first turn
  Distribution output_tokens;
  double rank_correlation = 0;        ///< of input and output (Spearman)
  std::int64_t max_total_tokens = 0;  ///< input + output of a request stay below it; 0: no limit
  std::optional<PrefixSpec> prefix;
  std::optional<SessionSpec> session;
};

/// The names of the specs that come with the project, sorted.
std::vector<std::string> spec_names();

/// Loads a spec by name, or from a file when `name_or_path` has a '/' or ends in ".json".
/// Throws InputError: unknown name, or whatever is wrong in the file, with its JSON pointer.
GenerateSpec load_spec(const std::string& name_or_path);

}  // namespace servesim
