#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace servesim {

bool is_terminal(int fd) {
  return isatty(fd) == 1;
}

std::size_t terminal_width(int fd) {
  winsize size{};
  if (!is_terminal(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

TextStyle style_for(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain = (no_color != nullptr && *no_color != '\0') ||
                     (term != nullptr && std::string_view(term) == "dumb");
  return {is_terminal(fd) && !plain, terminal_width(fd)};
}

}  // namespace servesim
