/// Are flags parsed as people write them, and refused in words that help?
#include "cli/flags.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

FlagSet sample() {
  FlagSet flags("", "A program.");
  flags.group("All");
  flags.add({"trace", "FILE", "a trace", Arity::kEach});
  flags.add({"json", "FILE", "an output", Arity::kOne});
  flags.add({"caching", "", "a switch with a value", Arity::kOptional});
  flags.add({"goodput", "NAME:MS", "several", Arity::kMany});
  flags.add({"quiet", "", "a switch", Arity::kNone});
  return flags;
}

std::string refusal(const std::vector<std::string>& arguments) {
  FlagSet flags = sample();
  try {
    flags.parse(arguments);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("values in every form") {
  FlagSet flags = sample();
  REQUIRE(flags.parse({"--trace", "a", "--trace=b", "--goodput", "ttft:1", "tpot:2", "--json", "-",
                       "--caching", "--quiet"}));
  CHECK(flags.values("trace") == std::vector<std::string>{"a", "b"});
  CHECK(flags.values("goodput") == std::vector<std::string>{"ttft:1", "tpot:2"});
  CHECK(flags.value("json") == "-");
  CHECK(flags.given("quiet"));
  CHECK(flags.given("caching"));
  CHECK(flags.value("missing", "fallback") == "fallback");
}

TEST_CASE("a number below zero is a value, not a flag") {
  FlagSet flags = sample();
  REQUIRE(flags.parse({"--trace", "-5"}));
  CHECK(flags.value("trace") == "-5");
}

TEST_CASE("help is asked for") {
  FlagSet flags = sample();
  CHECK_FALSE(flags.parse({"--help"}));
  CHECK(flags.help().find("--goodput NAME:MS") != std::string::npos);
}

TEST_CASE("refusals") {
  CHECK(refusal({"--trce", "a"}) == "unknown flag '--trce'; did you mean '--trace'?");
  CHECK(refusal({"--zzzzzzzz"}) == "unknown flag '--zzzzzzzz'; see --help");
  CHECK(refusal({"--json"}) == "--json needs a value");
  CHECK(refusal({"--json="}) == "--json needs a value");
  CHECK(refusal({"--json", "--quiet"}) == "--json needs a value");
  CHECK(refusal({"--json", "a", "--json", "b"}) == "--json is given 2 times");
  CHECK(refusal({"--quiet=3"}) == "--quiet takes no value");
  CHECK(refusal({"stray"}).find("'stray'") != std::string::npos);
}

}  // namespace servesim
