/// What the terminal can show.
#pragma once

#include <cstddef>

#include "report/text_table.hpp"

namespace servesim {

bool is_terminal(int fd);
/// Columns of the terminal on `fd`; 0 when it is none.
std::size_t terminal_width(int fd);
/// Colour on a terminal, unless NO_COLOR is set or TERM is "dumb"; as wide as the terminal, or
/// unlimited.
TextStyle style_for(int fd);

}  // namespace servesim
