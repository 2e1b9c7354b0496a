/// The program's own command line, so that a machine with a compiler alone can build it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace servesim::calibrate {

/// A flag a verb knows. `fallback` "" and not required: absent.
struct FlagSpec {
  std::string name;   ///< "--out"
  std::string value;  ///< what its value is called; "" for a switch
  std::string help;
  std::string fallback;
  bool required = false;
};

struct Verb {
  std::string name;
  std::string help;
  std::string operand;  ///< name of the one positional argument; "" for none
  std::vector<FlagSpec> flags;
};

/// What was given to a verb, with defaults filled in.
class Flags {
 public:
  /// Throws InputError for what `verb` does not know (with the nearest flag), for a missing value,
  /// flag or operand, and for what is given twice. Takes `--flag value` and `--flag=value`.
  Flags(const Verb& verb, const std::vector<std::string>& arguments);

  bool help() const { return help_; }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  /// The value, or "" when absent.
  std::string text(const std::string& name) const;
  /// Throws InputError unless the value is a number within [low, high].
  double number(const std::string& name, double low, double high) const;
  const std::string& operand() const { return operand_; }

 private:
  std::map<std::string, std::string> values_;
  std::string operand_;
  bool help_ = false;
};

std::string usage(const std::vector<Verb>& verbs);
std::string usage(const Verb& verb);

/// The name nearest to `name` by edit distance, at most a third of its length away; else "".
std::string nearest_flag(const std::string& name, const std::vector<std::string>& known);

}  // namespace servesim::calibrate
