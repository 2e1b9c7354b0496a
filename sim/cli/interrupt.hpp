/// Ctrl-C asks the program to stop cleanly; a second one, over a second later, ends it at once.
#pragma once

namespace servesim {

/// What the program returns after an interrupt: 128 + SIGINT, as shells have it.
inline constexpr int kInterruptedExit = 130;

/// A closed pipe is a failed write from now on, and no signal.
void ignore_broken_pipes();
/// Catches SIGINT, SIGTERM and SIGHUP from now on. For when there is something to leave clean and
/// someone who asks interrupted(); until then they end the program, as they should while it waits
/// for its input.
void catch_interrupts();
bool interrupted();

}  // namespace servesim
