#include "cli/man_page.hpp"

#include <fmt/format.h>

#include "cli/topics.hpp"
#include "cli/verbs.hpp"
#include "report/result_json.hpp"

namespace servesim {
namespace {

/// Text as troff takes it literally: no line starts with a control character, no backslash or
/// hyphen is interpreted.
std::string escaped(const std::string& text) {
  std::string result;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    at_start = c == '\n';
  }
  return result;
}

std::string flags_section(const FlagSet& flags) {
  std::string text;
  std::string group;
  for (const FlagSet::Declared& declared : flags.declared()) {
    if (declared.flag.help.empty()) continue;  // the negative form of a switch
    if (declared.group != group) {
      group = declared.group;
      text += fmt::format(".SS {}\n", escaped(group));
    }
    const bool has_negative = declared.flag.arity == Arity::kOptional;
    text += fmt::format(".TP\n.B {}{}{}{}\n{}\n", has_negative ? "\\-\\-[no\\-]" : "\\-\\-",
                        escaped(declared.flag.name), declared.flag.value_name.empty() ? "" : " ",
                        escaped(declared.flag.value_name), escaped(declared.flag.help));
  }
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string man_page() {
  std::string text =
      fmt::format(".TH SIMULATE 1 \"\" \"servesim {}\" \"User Commands\"\n", escaped(version()));
  text += ".SH NAME\nsimulate \\- simulates LLM serving\n.SH SYNOPSIS\n";
  for (const Verb& verb : verbs()) {
    text += fmt::format(".B simulate{}{}\n[flags]\n.br\n", verb.name.empty() ? "" : " ", verb.name);
  }
  text += ".SH DESCRIPTION\n" + escaped(simulate_flags().description()) + "\n";
  for (const Verb& verb : verbs()) {
    const FlagSet flags = verb.flags();
    text += verb.name.empty() ? ".SH OPTIONS\n"
                              : fmt::format(".SH SIMULATE {}\n{}\n", upper(verb.name),
                                            escaped(flags.description()));
    text += flags_section(flags);
  }
  for (const Topic& topic : topics()) {
    text += fmt::format(".SH {}\n.nf\n{}\n.fi\n.PP\nExamples:\n.nf\n", upper(topic.name),
                        escaped(topic.text));
    for (const std::string& example : topic.examples) text += escaped("  " + example) + "\n";
    text += ".fi\n";
  }
  text +=
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set, no colour.\n.TP\n.B SERVESIM_DATA\n"
      "The folder of models/ and workloads/.\n";
  return text;
}

}  // namespace servesim
