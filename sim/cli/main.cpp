#include "cli/interrupt.hpp"
#include "cli/verbs.hpp"

int main(int argc, char** argv) {
  servesim::ignore_broken_pipes();
  return servesim::run_program(std::vector<std::string>(argv + 1, argv + argc));
}
