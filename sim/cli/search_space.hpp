/// The configurations that a search goes through.
#pragma once

#include <string>
#include <vector>

#include "cli/axes.hpp"

namespace servesim {

/// The axes of the file at `path` (docs/search.md): an object whose keys are flags, without dashes
/// before them, and whose values are one value, a list, or a range {"from", "to", "step" or
/// "factor"}. In the order of axes(). Throws InputError for unknown flags (with the nearest known
/// one), for those a search sets itself, for empty lists and for ranges that are none.
std::vector<AxisValues> read_space(const std::string& path);

/// `given` on the command line and `space` together, in the order of axes(). Throws InputError for
/// a flag that is in both.
std::vector<AxisValues> join_axes(const std::vector<AxisValues>& given,
                                  const std::vector<AxisValues>& space);

/// Throws InputError for flags that contradict a search.
void check_search_axes(const std::vector<AxisValues>& given);

/// For each entry of product(): the entry to learn from, which differs in one step of the last axis
/// that can take one back; its own number where there is none.
std::vector<std::size_t> predecessors(const std::vector<AxisValues>& axes);

}  // namespace servesim
