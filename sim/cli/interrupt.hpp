/// Ctrl-C asks the program to stop cleanly; a second one ends it at once.
#pragma once

namespace servesim {

/// What the program returns after an interrupt: 128 + SIGINT, as shells have it.
inline constexpr int kInterruptedExit = 130;

/// Catches SIGINT, SIGTERM and SIGHUP from now on, and ignores SIGPIPE (a closed pipe is a failed
/// write).
void install_signal_handlers();
bool interrupted();

}  // namespace servesim
