#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "cli/interrupt.hpp"
#include "cli/outputs.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"

namespace servesim {
namespace {

constexpr int kUserFault = 2;
constexpr int kOurFault = 1;

std::string quoted(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  text += '\'';
  return text;
}

/// The command line as it can be pasted into a shell.
std::string command_line(const std::vector<std::string>& arguments) {
  std::string text = "simulate";
  for (const std::string& argument : arguments) text += fmt::format(" {}", quoted(argument));
  return text;
}

int dispatch(const std::vector<std::string>& arguments) {
  const std::string command = command_line(arguments);
  if (arguments.empty() || arguments[0].starts_with('-')) return run_simulate(arguments, command);
  std::vector<std::string> known;
  for (const Verb& verb : verbs()) {
    if (!verb.name.empty()) known.push_back(verb.name);
    if (verb.name != arguments[0]) continue;
    return verb.run({arguments.begin() + 1, arguments.end()}, command);
  }
  throw unknown_name("verb", arguments[0], known);
}

/// One line, whatever the message held.
void complain(std::string message) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  fmt::print(stderr, "simulate: {}\n", message);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  try {
    return dispatch(arguments);
  } catch (const InputError& error) {
    complain(error.what());
    return kUserFault;
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    return kOurFault;
  } catch (const std::exception& error) {
    complain(fmt::format("internal error, please report it: {}", error.what()));
    return kOurFault;
  }
}

}  // namespace servesim
