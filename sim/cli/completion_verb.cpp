#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/named_lists.hpp"
#include "cli/outputs.hpp"
#include "cli/topics.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"

namespace servesim {
namespace {

using Choices = std::map<std::string, std::vector<std::string>>;

/// The names that flags take, by flag.
Choices choices_by_flag() {
  Registries registries;
  register_builtins(registries);
  Choices choices;
  for (const NamedList& list : named_lists(registries)) {
    std::vector<std::string>& names = choices[list.flag.substr(list.flag.find("--") + 2)];
    for (const auto& [name, sentence] : list.entries()) names.push_back(name);
  }
  return choices;
}

/// The names a flag takes: a registry's, or those its help lists first, as in "fcfs|priority".
std::vector<std::string> choices_of(const Flag& flag, const Choices& choices) {
  if (const auto found = choices.find(flag.name); found != choices.end()) return found->second;
  std::stringstream words(flag.help);
  for (std::string word; words >> word;) {
    if (word.find('|') == std::string::npos) continue;
    std::vector<std::string> names;
    std::stringstream parts(word);
    for (std::string name; std::getline(parts, name, '|');) {
      name.erase(std::find_if(name.begin(), name.end(),
                              [](char c) { return c == ':' || c == ',' || c == ';'; }),
                 name.end());
      names.push_back(name);
    }
    return names;
  }
  return {};
}

enum class ValueKind { kNone, kNames, kFile, kFolder };

ValueKind kind_of(const Flag& flag, const std::vector<std::string>& names) {
  if (flag.value_name.find("FILE") != std::string::npos && names.empty()) return ValueKind::kFile;
  if (flag.value_name == "DIR") return ValueKind::kFolder;
  return names.empty() ? ValueKind::kNone : ValueKind::kNames;
}

/// What stands after a verb that is no flag.
std::vector<std::string> arguments_of(const Verb& verb) {
  std::vector<std::string> words;
  if (verb.name == "completion") words = {"bash", "zsh"};
  if (verb.name == "help") {
    for (const Topic& topic : topics()) words.push_back(topic.name);
    for (const Verb& other : verbs()) words.push_back(other.name);
  }
  if (verb.name == "list") {
    Registries registries;
    register_builtins(registries);
    for (const NamedList& list : named_lists(registries)) words.push_back(list.name);
  }
  return words;
}

std::string bash_script() {
  const Choices choices = choices_by_flag();
  std::string values;
  std::string flags_by_verb;
  std::string verb_names;
  for (const Verb& verb : verbs()) {
    std::string words = fmt::format("{}", fmt::join(arguments_of(verb), " "));
    const FlagSet flags = verb.flags();
    for (const FlagSet::Declared& declared : flags.declared()) {
      const Flag& flag = declared.flag;
      words += fmt::format(" --{}", flag.name);
      if (flag.arity == Arity::kNone) continue;
      const std::vector<std::string> names = choices_of(flag, choices);
      const ValueKind kind = kind_of(flag, names);
      if (kind == ValueKind::kNames) {
        values += fmt::format("    {}:--{}) names='{}' ;;\n", verb.name, flag.name,
                              fmt::join(names, " "));
      } else if (kind == ValueKind::kFolder) {
        values += fmt::format("    {}:--{}) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n",
                              verb.name, flag.name);
      } else if (kind == ValueKind::kFile || flag.arity != Arity::kOptional) {
        values += fmt::format("    {}:--{}) return ;;\n", verb.name, flag.name);
      }
    }
    flags_by_verb +=
        fmt::format("    {}) words='{} --help' ;;\n", verb.name.empty() ? "''" : verb.name, words);
    if (!verb.name.empty()) verb_names += " " + verb.name;
  }
  return fmt::format(R"sh(# bash completion for simulate; made by `simulate completion bash`
_simulate() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb= names= words= head=
  COMPREPLY=()
  ((COMP_CWORD > 1)) && [[ ${{COMP_WORDS[1]}} != -* ]] && verb=${{COMP_WORDS[1]}}
  case $verb:$prev in
{}  esac
  if [[ -n $names ]]; then
    [[ $cur == *,* ]] && head=${{cur%,*}},
    COMPREPLY=($(compgen -P "$head" -W "$names" -- "${{cur##*,}}"))
    return
  fi
  case $verb in
{}    *) return ;;
  esac
  ((COMP_CWORD == 1)) && words+='{}'
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _simulate simulate
)sh",
                     values, flags_by_verb, verb_names);
}

/// A sentence within the brackets of an option of zsh's _arguments, in single quotes.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      result += '\\';
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string zsh_option(const Flag& flag, const Choices& choices) {
  const bool repeats = flag.arity == Arity::kEach || flag.arity == Arity::kMany;
  std::string option =
      fmt::format("'{}--{}[{}]", repeats ? "*" : "", flag.name, zsh_text(flag.help));
  if (flag.arity == Arity::kNone || flag.arity == Arity::kOptional) return option + "'";
  const std::vector<std::string> names = choices_of(flag, choices);
  option += fmt::format(":{}:", zsh_text(flag.value_name));
  switch (kind_of(flag, names)) {
    case ValueKind::kNames:
      return option + fmt::format("_values -s , {} {}'", flag.name, fmt::join(names, " "));
    case ValueKind::kFile:
      return option + "_files'";
    case ValueKind::kFolder:
      return option + "_files -/'";
    case ValueKind::kNone:
      break;
  }
  return option + "'";
}

std::string zsh_script() {
  const Choices choices = choices_by_flag();
  std::string names;
  std::string cases;
  for (const Verb& verb : verbs()) {
    std::string options;
    const FlagSet flags = verb.flags();
    for (const FlagSet::Declared& declared : flags.declared()) {
      options += fmt::format(" \\\n        {}", zsh_option(declared.flag, choices));
    }
    const std::vector<std::string> words = arguments_of(verb);
    if (!words.empty()) options += fmt::format(" \\\n        '1:word:({})'", fmt::join(words, " "));
    cases += fmt::format("    {})\n      _arguments{}\n      ;;\n",
                         verb.name.empty() ? "*" : verb.name, options);
    if (!verb.name.empty()) names += fmt::format(" '{}:{}'", verb.name, zsh_text(verb.summary));
  }
  // The default verb matches all that is no other, so it comes last.
  const std::size_t second = cases.find("      ;;\n") + std::string("      ;;\n").size();
  cases = cases.substr(second) + cases.substr(0, second);
  return fmt::format(R"sh(#compdef simulate
# zsh completion for simulate; made by `simulate completion zsh`
_simulate() {{
  local -a verbs
  verbs=({})
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe verb verbs
    return
  fi
  if [[ $words[2] != -* ]]; then
    shift words
    (( CURRENT-- ))
  fi
  case $words[1] in
{}  esac
}}
if [[ $funcstack[1] == _simulate ]]; then _simulate "$@"; else compdef _simulate simulate; fi
)sh",
                     names, cases);
}

}  // namespace

FlagSet completion_flags() {
  FlagSet flags("completion", "Writes a completion script for a shell.");
  flags.usage("bash|zsh");
  flags.footer(
      "Examples:\n"
      "  source <(simulate completion bash)\n"
      "  simulate completion zsh > ~/.zfunc/_simulate");
  return flags;
}

int run_completion(const std::vector<std::string>& arguments, const std::string&) {
  if (arguments.empty() || arguments[0].starts_with('-')) {
    FlagSet flags = completion_flags();
    if (flags.parse(arguments)) throw InputError("completion of which shell? accepted: bash, zsh");
    write_stdout(flags.help());
    return 0;
  }
  if (arguments.size() > 1) throw InputError("completion takes one shell: bash or zsh");
  if (arguments[0] == "bash") {
    write_stdout(bash_script());
  } else if (arguments[0] == "zsh") {
    write_stdout(zsh_script());
  } else {
    throw unknown_name("shell", arguments[0], {"bash", "zsh"});
  }
  return 0;
}

}  // namespace servesim
