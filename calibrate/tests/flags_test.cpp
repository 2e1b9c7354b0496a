// The program's command line.
#include "flags.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "verbs.hpp"

using namespace servesim::calibrate;

namespace {

const Verb kFlagsVerb{"try",
                      "help",
                      "FILE",
                      {{"--out", "DIR", "where", "", true},
                       {"--budget", "S", "seconds", "60", false},
                       {"--fast", "", "switch", "", false}}};

std::string flags_fault(const std::vector<std::string>& arguments) {
  try {
    const Flags flags(kFlagsVerb, arguments);
  } catch (const servesim::InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("flags take values either way and have defaults", "[calibrate]") {
  const Flags flags(kFlagsVerb, {"--out", "d", "p.json", "--fast"});
  CHECK(flags.text("--out") == "d");
  CHECK(flags.operand() == "p.json");
  CHECK(flags.has("--fast"));
  CHECK(flags.number("--budget", 0, 100) == 60);
  const Flags joined(kFlagsVerb, {"--budget=7.5", "x", "--out=e=f"});
  CHECK(joined.number("--budget", 0, 100) == 7.5);
  CHECK(joined.text("--out") == "e=f");
  CHECK_FALSE(joined.has("--fast"));
  CHECK(Flags(kFlagsVerb, {"--help"}).help());
}

TEST_CASE("what a verb does not know is refused in one line", "[calibrate]") {
  CHECK(flags_fault({"x", "--oot", "d"}) == "unknown flag '--oot' of try; did you mean '--out'?");
  CHECK(flags_fault({"x", "--zzzzzzzz", "d"}).find("--help") != std::string::npos);
  CHECK(flags_fault({"x"}) == "--out is required by try");
  CHECK(flags_fault({"x", "--out"}) == "--out needs a value: DIR");
  CHECK(flags_fault({"x", "--out", "a", "--out", "b"}) == "--out is given twice");
  CHECK(flags_fault({"x", "--out", "a", "--fast=1"}) == "--fast takes no value");
  CHECK(flags_fault({"x", "y", "--out", "a"}) == "unexpected argument 'y' of try");
  CHECK(flags_fault({"--out", "a"}) == "try needs its argument: FILE");
  const Flags flags(kFlagsVerb, {"x", "--out", "d", "--budget", "5x"});
  CHECK_THROWS_AS(flags.number("--budget", 0, 100), servesim::InputError);
  const Flags large(kFlagsVerb, {"x", "--out", "d", "--budget", "500"});
  CHECK_THROWS_AS(large.number("--budget", 0, 100), servesim::InputError);
}

TEST_CASE("every verb lists its flags", "[calibrate]") {
  CHECK(verbs().front().name == "measure");
  for (const Verb& verb : verbs()) {
    const std::string text = usage(verb);
    for (const FlagSpec& flag : verb.flags) {
      CHECK(text.find(flag.name) != std::string::npos);
      CHECK_FALSE(flag.help.empty());
    }
    CHECK(usage(verbs()).find(verb.name) != std::string::npos);
  }
}
