#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/man_page.hpp"
#include "cli/outputs.hpp"
#include "cli/terminal.hpp"
#include "cli/topics.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"

namespace servesim {
namespace {

std::string overview(const TextStyle& style) {
  std::string text = paint("servesim", kBold, style) + ": simulates LLM serving\n\n";
  text += paint("Verbs", kBold, style) + " (each with --help)\n";
  for (const Verb& verb : verbs()) {
    text += fmt::format("  {:<22} {}\n", verb.name.empty() ? "simulate" : "simulate " + verb.name,
                        verb.summary);
  }
  text += "\n" + paint("Topics", kBold, style) + " (simulate help TOPIC, or a flag's name)\n";
  for (const Topic& topic : topics()) {
    text += fmt::format("  {:<22} {}\n", topic.name, topic.summary);
  }
  return text + "\nsimulate --help lists the flags of a run.\n";
}

std::string topic_text(const Topic& topic, const TextStyle& style) {
  std::string text =
      fmt::format("{}: {}\n\n{}\n\n", paint(topic.name, kBold, style), topic.summary, topic.text);
  text += paint("Examples", kBold, style) + "\n";
  for (const std::string& example : topic.examples) text += fmt::format("  {}\n", example);
  return text;
}

/// What every verb that has the flag says about it; empty when none has.
std::string flag_text(const std::string& name, const TextStyle& style) {
  std::string text;
  for (const Verb& verb : verbs()) {
    const FlagSet flags = verb.flags();
    for (const FlagSet::Declared& declared : flags.declared()) {
      if (declared.flag.name != name) continue;
      const std::string title = fmt::format("--{} {}", name, declared.flag.value_name);
      text += fmt::format("{} (simulate{}{})\n  {}\n", paint(title, kBold, style),
                          verb.name.empty() ? "" : " ", verb.name, declared.flag.help);
    }
  }
  return text;
}

}  // namespace

FlagSet help_flags() {
  FlagSet flags("help", "Help by topic.");
  flags.usage("[VERB|TOPIC|FLAG]");
  flags.group("Flags");
  flags.add({"man", "", "Write the manual page", Arity::kNone});
  return flags;
}

int run_help(const std::vector<std::string>& arguments, const std::string&) {
  const TextStyle style = style_for(STDOUT_FILENO);
  if (arguments.empty()) {
    write_stdout(overview(style));
    return 0;
  }
  if (arguments[0] == "--man" || arguments[0] == "--help" || arguments[0] == "-h") {
    FlagSet flags = help_flags();
    write_stdout(flags.parse(arguments) ? man_page() : flags.help());
    return 0;
  }
  if (arguments.size() > 1) throw InputError("help takes one topic");
  std::vector<std::string> known;
  for (const Topic& topic : topics()) {
    if (topic.name == arguments[0]) {
      write_stdout(topic_text(topic, style));
      return 0;
    }
    known.push_back(topic.name);
  }
  for (const Verb& verb : verbs()) {
    if (verb.name.empty() ? arguments[0] == "simulate" : arguments[0] == verb.name) {
      write_stdout(verb.flags().help());
      return 0;
    }
    if (!verb.name.empty()) known.push_back(verb.name);
  }
  std::string name = arguments[0];
  name.erase(0, name.find_first_not_of('-'));
  const std::string text = flag_text(name, style);
  if (text.empty()) throw unknown_name("topic", arguments[0], known);
  write_stdout(text);
  return 0;
}

}  // namespace servesim
