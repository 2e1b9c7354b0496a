/// The flags by which verbs that run simulations say how they run.
#pragma once

#include "cli/flags.hpp"

namespace servesim {

/// Declares --seed, --threads, --quiet and --no-progress.
void add_running_flags(FlagSet& flags);
/// --threads, or all cores. Throws InputError for what is no such number.
std::size_t thread_count(const FlagSet& flags);
/// Whether a progress line may be drawn: on a terminal, unless told not to.
bool shows_progress(const FlagSet& flags);

}  // namespace servesim
