/// Does the progress line say how far things are, in the room there is?
#include "cli/progress.hpp"
#include "report/text_table.hpp"
#include "support/catch.hpp"

namespace servesim {

TEST_CASE("the progress of one run and of many") {
  ProgressState state;
  state.requests_read = 500;
  state.requests_total = 1000;
  state.simulated_s = 125;
  const std::string one = progress_text(state, 10, 200);
  CHECK(one.find("50%") != std::string::npos);
  CHECK(one.find("10 s left") != std::string::npos);
  CHECK(one.find("500 requests, 2:05 min simulated") != std::string::npos);
  state.runs = 12;
  state.runs_done = 5;
  CHECK(progress_text(state, 10, 200).find("run 6 of 12") != std::string::npos);
}

TEST_CASE("a narrow terminal cuts the line between characters") {
  ProgressState state;
  state.requests_read = 500;
  state.requests_total = 1000;
  for (std::size_t width = 0; width < 60; ++width) {
    CHECK(display_width(progress_text(state, 10, width)) <= width);
  }
}

}  // namespace servesim
