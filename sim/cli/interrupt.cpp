#include "cli/interrupt.hpp"

#include <csignal>

namespace servesim {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_signal(int number) {
  g_interrupted = 1;
  std::signal(number, SIG_DFL);
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
