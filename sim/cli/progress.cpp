#include "cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/terminal.hpp"
#include "report/result_table.hpp"

namespace servesim {
namespace {

constexpr std::size_t kBarCells = 24;

std::string bar(double share) {
  const auto full = static_cast<std::size_t>(share * static_cast<double>(kBarCells));
  std::string text;
  for (std::size_t i = 0; i < kBarCells; ++i) text += i < full ? "━" : "┄";
  return text;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return whole < 60 ? fmt::format("{} s", whole)
                    : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

}  // namespace

std::string progress_text(const ProgressState& state, double elapsed_s, std::size_t width) {
  const auto read = static_cast<double>(state.requests_read);
  std::string text = " ";
  if (state.share || state.requests_total > 0) {
    const double share =
        state.share.value_or(std::min(read / static_cast<double>(state.requests_total), 1.0));
    text += fmt::format("{} {:3.0f}%", bar(share), 100 * share);
    if (share > 0.02) text += fmt::format("  {} left", clock_text(elapsed_s * (1 - share) / share));
    text += "  ";
  }
  if (state.runs > 1) {
    text += fmt::format("{} {} of {}  ", state.noun, std::min(state.runs_done + 1, state.runs),
                        state.runs);
  }
  text += with_thousands(static_cast<std::int64_t>(state.requests_read)) + " requests";
  if (state.runs == 1) text += fmt::format(", {} simulated", clock_text(state.simulated_s));
  while (!text.empty() && display_width(text) > width) {
    do {
      text.pop_back();
    } while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80);
  }
  return text;
}

ProgressLine::ProgressLine(bool enabled)
    : enabled_(enabled), start_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::update(const ProgressState& state) {
  if (!enabled_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  if (elapsed.count() < 1) return;
  const std::size_t columns = terminal_width(2);
  const std::string text = progress_text(state, elapsed.count(), columns > 1 ? columns - 1 : 79);
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace servesim
