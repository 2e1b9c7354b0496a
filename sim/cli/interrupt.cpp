#include "cli/interrupt.hpp"

#include <csignal>
#include <ctime>

namespace servesim {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;
volatile std::sig_atomic_t g_interrupted_at_s = 0;

std::sig_atomic_t now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::sig_atomic_t>(now.tv_sec);
}

/// A second signal ends the program, but not one that comes with the first: timeout(1) sends two.
void on_signal(int number) {
  if (g_interrupted == 0) {
    g_interrupted_at_s = now_s();
    g_interrupted = 1;
  } else if (now_s() - g_interrupted_at_s > 1) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

}  // namespace

void ignore_broken_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGHUP, on_signal);
}

bool interrupted() {
  return g_interrupted != 0;
}

}  // namespace servesim
