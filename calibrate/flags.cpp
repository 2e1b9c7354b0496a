#include "flags.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "core/error.hpp"
#include "text.hpp"

namespace servesim::calibrate {
namespace {

std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

InputError unknown_flag(const Verb& verb, const std::string& name) {
  std::vector<std::string> known;
  for (const FlagSpec& flag : verb.flags) known.push_back(flag.name);
  const std::string near = nearest_flag(name, known);
  return InputError("unknown flag '" + name + "' of " + verb.name +
                    (near.empty() ? "; see calibrate " + verb.name + " --help"
                                  : "; did you mean '" + near + "'?"));
}

}  // namespace

std::string nearest_flag(const std::string& name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t d = distance(name, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

Flags::Flags(const Verb& verb, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (name == "--help" || name == "-h") {
      help_ = true;
      return;
    }
    if (name.rfind("-", 0) != 0) {
      if (verb.operand.empty() || !operand_.empty()) {
        throw InputError("unexpected argument '" + name + "' of " + verb.name);
      }
      operand_ = name;
      continue;
    }
    std::string value;
    const auto equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto flag = std::find_if(verb.flags.begin(), verb.flags.end(),
                                   [&](const FlagSpec& f) { return f.name == name; });
    if (flag == verb.flags.end()) throw unknown_flag(verb, name);
    if (has(name)) throw InputError(name + " is given twice");
    if (flag->value.empty()) {
      if (joined) throw InputError(name + " takes no value");
      value = "1";
    } else if (!joined) {
      if (i + 1 == arguments.size()) throw InputError(name + " needs a value: " + flag->value);
      value = arguments[++i];
    }
    values_[name] = value;
  }
  for (const FlagSpec& flag : verb.flags) {
    if (has(flag.name)) continue;
    if (flag.required) throw InputError(flag.name + " is required by " + verb.name);
    if (!flag.fallback.empty()) values_[flag.name] = flag.fallback;
  }
  if (!verb.operand.empty() && operand_.empty()) {
    throw InputError(verb.name + " needs its argument: " + verb.operand);
  }
}

std::string Flags::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

double Flags::number(const std::string& name, double low, double high) const {
  const std::string value = text(name);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(number >= low && number <= high)) {
    throw InputError(print_to_string("%s '%s': accepted is a number from %g to %g", name.c_str(),
                                     value.c_str(), low, high));
  }
  return number;
}

std::string usage(const Verb& verb) {
  std::string text = "usage: calibrate " + verb.name + " [flags]" +
                     (verb.operand.empty() ? "" : " " + verb.operand) + "\n" + verb.help + "\n";
  for (const FlagSpec& flag : verb.flags) {
    const std::string left = flag.name + (flag.value.empty() ? "" : " " + flag.value);
    text += print_to_string("  %-26s %s%s%s\n", left.c_str(), flag.help.c_str(),
                            flag.required ? " (required)" : "",
                            flag.fallback.empty() ? "" : (" [" + flag.fallback + "]").c_str());
  }
  return text;
}

std::string usage(const std::vector<Verb>& verbs) {
  std::string text =
      "Measures this machine and makes hardware profiles for servesim.\n"
      "usage: calibrate [measure] --out DIR [flags]    or    calibrate VERB --help\n";
  for (const Verb& verb : verbs) {
    text += print_to_string("  %-10s %s\n", verb.name.c_str(), verb.help.c_str());
  }
  return text;
}

}  // namespace servesim::calibrate
