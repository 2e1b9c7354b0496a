/// The files a command reads, which its outputs must spare.
#pragma once

#include <string>
#include <vector>

#include "cli/axes.hpp"

namespace servesim {

/// Every file that `flags` and the values of axes `given` (on the command line, in a space, in a
/// folder of traces) name: traces, models, GPUs, links, scenarios, an engine's settings, a space, a
/// spec. Names that ship are among them, and are no paths.
std::vector<std::string> input_files(const FlagSet& flags, const std::vector<AxisValues>& given);

/// Whether there is a file at `path` that a name of a model, a GPU, a link, a topology or a spec
/// stands for.
bool is_shipped_data(const std::string& path);

}  // namespace servesim
