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

TEST_CASE("check and measure take the same machine's flags", "[calibrate]") {
  const auto of = [](const std::string& name) {
    for (const Verb& verb : verbs()) {
      if (verb.name == name) return verb;
    }
    FAIL("no verb " << name);
    return verbs().front();
  };
  const Flags check(of("check"), {"p.json", "--backend=cpu", "--json", "out.json"});
  CHECK(check.operand() == "p.json");
  CHECK(check.text("--backend") == "cpu");
  CHECK(check.text("--json") == "out.json");
  CHECK(check.number("--time-budget", 2, 100) == 30);
  CHECK(check.number("--device", 0, 10) == 0);
  CHECK_THROWS_WITH(Flags(of("check"), {}), "check needs its argument: PROFILE");
  CHECK_THROWS_WITH(Flags(of("measure"), {"--backend", "cpu"}), "--out is required by measure");
  CHECK_THROWS_AS(Flags(of("check"), {"p", "--out", "x"}), servesim::InputError);
  const Flags measure(of("measure"), {"--out", "run"});
  CHECK(measure.text("--backend") == "cuda");
  CHECK(measure.number("--time-budget", 5, 1e5) == 600);
  CHECK_FALSE(measure.has("--plan"));
}

TEST_CASE("a backend is chosen by its flags, and what is none is refused", "[calibrate]") {
  const Verb& measure = verbs().front();
  const auto fault = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--out", "x"});
    try {
      backend_of(Flags(measure, arguments));
    } catch (const servesim::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault({"--backend", "tpu"}) == "--backend 'tpu': accepted are cuda and cpu");
  CHECK(fault({"--backend", "cpu", "--threads", "-1"}) ==
        "--threads '-1': accepted is a number from 0 to 4096");
  CHECK(fault({"--backend", "cpu", "--seed", "x"}).find("--seed 'x'") == 0);
  CHECK(fault({"--device", "5000"}).find("--device '5000'") == 0);
  const auto backend =
      backend_of(Flags(measure, {"--backend", "cpu", "--threads", "1", "--out", "x"}));
  CHECK(backend->environment().units == 1);
  CHECK(backend->environment().backend == "cpu");
}

TEST_CASE("the nearest flag is a typo away, no further", "[calibrate]") {
  const std::vector<std::string> known{"--out", "--time-budget", "--backend"};
  CHECK(nearest_flag("--bakend", known) == "--backend");
  CHECK(nearest_flag("--time-budgte", known) == "--time-budget");
  CHECK(nearest_flag("--otu", known) == "--out");
  CHECK(nearest_flag("--gemm", known).empty());
  CHECK(nearest_flag("", known).empty());
  CHECK(nearest_flag("--out", {}).empty());
}
