#include <fmt/format.h>

#include <memory>
#include <sstream>

#include "cli/flags.hpp"
#include "cli/inputs.hpp"
#include "cli/interrupt.hpp"
#include "cli/outputs.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "report/atomic_file.hpp"
#include "workload/generator.hpp"

namespace servesim {
namespace {

struct Interrupted {};

}  // namespace

FlagSet generate_flags() {
  FlagSet flags("generate", "Writes a synthetic trace in the servesim format.");
  flags.group("Flags");
  flags.add(
      {"spec", "NAME|FILE", "A name from `simulate list specs`, or a spec.json", Arity::kOne});
  flags.add({"num-prompts", "N", "Number of requests [1000]", Arity::kOne});
  flags.add({"seed", "N", "Seed [0]", Arity::kOne});
  flags.add({"output", "FILE", "Where to write; - is stdout [-]", Arity::kOne});
  flags.footer(
      "Example:\n  simulate generate --spec chat --num-prompts 5000 --seed 1 --output t.jsonl");
  return flags;
}

int run_generate(const std::vector<std::string>& arguments, const std::string&) {
  FlagSet flags = generate_flags();
  if (!flags.parse(arguments)) {
    write_stdout(flags.help());
    return 0;
  }
  if (!flags.given("spec")) {
    throw InputError("--spec NAME|FILE is missing; `simulate list specs` names those that ship");
  }
  constexpr std::int64_t kMostPrompts = 1'000'000'000;
  const std::int64_t count =
      parse_integer(flags.value("num-prompts", "1000"), "--num-prompts", 1, kMostPrompts);
  const std::int64_t seed = parse_integer(flags.value("seed", "0"), "--seed", 0, INT64_MAX);
  const GenerateSpec spec = load_spec(flags.value("spec"));
  const std::string path = flags.value("output", "-");
  check_distinct({{"--output", path}}, input_files(flags, {}));
  catch_interrupts();
  std::unique_ptr<AtomicFile> file;
  if (path != "-") file = std::make_unique<AtomicFile>(path);
  std::ostringstream out;
  constexpr std::streamoff kPiece = 1 << 20;
  const auto pass_on = [&] {
    if (file) {
      file->write(out.str());
    } else {
      write_stdout(out.str());
    }
    out.str("");
  };
  try {
    out << fmt::format("# simulate generate --spec {} --seed {} --num-prompts {}\n", spec.name,
                       seed, count);
    generate(spec, static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(seed),
             [&](const Request& request) {
               write_request(request, out);
               if (out.tellp() > kPiece) pass_on();
               if (interrupted()) throw Interrupted();
             });
  } catch (const Interrupted&) {
    return kInterruptedExit;
  }
  pass_on();
  if (file) file->commit();
  return 0;
}

}  // namespace servesim
