/// What both halves of `simulate size` read from their flags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flags.hpp"
#include "hardware/hardware_spec.hpp"

namespace servesim {

/// Whole numbers of a list flag, at least 1, none twice; `fallback` when it was not given.
std::vector<std::int64_t> size_list(const FlagSet& flags, const std::string& name,
                                    std::int64_t fallback);
/// Words of a list flag, none twice; `fallback` when it was not given.
std::vector<std::string> word_list(const FlagSet& flags, const std::string& name,
                                   const std::string& fallback);
/// Bytes per second from "2TB/s" or "2TB". Throws InputError naming the flag.
double parse_bandwidth(const std::string& text, const std::string& flag);
/// The GPU called `name`, with --hbm-bandwidth in place of its own where given.
HardwareSpec sized_hardware(const FlagSet& flags, const std::string& name);

/// Writes `json` where --json says, or `table` to stdout.
void write_sizes(const FlagSet& flags, const std::string& table, const std::string& json);

/// Flags that only --training takes, with their dashes left out.
const std::vector<std::string>& training_flag_names();
void add_training_flags(FlagSet& flags);
/// `simulate size --training`, its flags parsed.
int run_size_training(const FlagSet& flags, const std::string& command);

}  // namespace servesim
