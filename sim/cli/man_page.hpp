/// The manual page simulate(1).
#pragma once

#include <string>

namespace servesim {

/// The page in the man macros of troff, made from the tables of verbs, flags and topics.
std::string man_page();

}  // namespace servesim
