/// What all runs of a comparison have in common, in one line.
#pragma once

#include <string>
#include <vector>

#include "cli/resolve.hpp"

namespace servesim {

/// "llama-3.1-8b on 1 x h100-sxm; paged KV, 28,930 blocks of 16 tokens". What differs is left out.
/// REQUIRES: !runs.empty().
std::string headline(const std::vector<ResolvedRun>& runs);

}  // namespace servesim
