/// Ctrl-C asks the program to stop cleanly; a second one ends it at once.
#pragma once

namespace servesim {

/// Catches SIGINT, SIGTERM and SIGHUP from now on, and ignores SIGPIPE (a closed pipe is a failed
/// write).
void install_signal_handlers();
bool interrupted();

}  // namespace servesim
