/// The flags of one verb. Parsing, help and messages; what the values mean is the verb's business.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servesim {

enum class Arity {
  kNone,      ///< a switch
  kOne,       ///< one value, given once
  kEach,      ///< one value each time; may be given again
  kOptional,  ///< a switch that may take a value; may be given again
  kMany,      ///< all that follows up to the next flag
};

struct Flag {
  std::string name;        ///< without the dashes
  std::string value_name;  ///< "N", "FILE"; empty for a switch
  std::string help;
  Arity arity;
};

/// Declares flags group by group, then parses.
class FlagSet {
 public:
  /// `verb` is empty for the default one.
  FlagSet(std::string verb, std::string description);

  /// The heading under which the flags added from now on stand in the help.
  void group(std::string name) { group_ = std::move(name); }
  void add(Flag flag);
  void footer(std::string text) { footer_ = std::move(text); }
  /// What may stand behind the program's and the verb's name; flags alone unless said.
  void usage(std::string text) { usage_ = std::move(text); }

  /// Parses the arguments after the program's and the verb's name; false when help was asked for.
  /// Throws InputError for an unknown flag (with the nearest known one), a missing value, a flag
  /// given twice, an argument that belongs to no flag.
  bool parse(const std::vector<std::string>& arguments);

  std::string help() const;

  struct Declared {
    Flag flag;
    std::string group;
  };
  const std::vector<Declared>& declared() const { return declared_; }
  const std::string& description() const { return description_; }

  bool given(const std::string& name) const { return given_.contains(name); }
  /// All values of a flag, in order; empty when it was not given or given as a bare switch.
  const std::vector<std::string>& values(const std::string& name) const;
  /// The value of a flag that takes one, or `fallback`.
  std::string value(const std::string& name, std::string_view fallback = "") const;

 private:
  std::string verb_, description_, footer_, group_, usage_;
  std::vector<Declared> declared_;
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string> given_;
};

}  // namespace servesim
