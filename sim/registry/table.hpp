/// A named list of things that can be chosen on the command line.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace servesim {

/// Entries in the order in which they were added: a name, a sentence for `simulate list`, and a
/// factory.
template <typename Factory>
class Table {
 public:
  struct Entry {
    std::string name;
    std::string sentence;
    Factory factory;
  };

  /// `kind` names an entry in messages: "policy".
  explicit Table(std::string kind) : kind_(std::move(kind)) {}

  /// Throws std::logic_error for a name that is taken.
  void add(std::string name, std::string sentence, Factory factory = {}) {
    if (find(name) != entries_.end()) throw std::logic_error(kind_ + " added twice: " + name);
    entries_.push_back({std::move(name), std::move(sentence), std::move(factory)});
  }

  /// Throws InputError that lists the choices and suggests the nearest.
  const Factory& at(std::string_view name) const {
    const auto found = find(name);
    if (found == entries_.end()) throw unknown_name(kind_, name, names());
    return found->factory;
  }
  /// Throws as at() does.
  void require(std::string_view name) const { at(name); }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const Entry& entry : entries_) result.push_back(entry.name);
    return result;
  }
  const std::string& kind() const { return kind_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  auto find(std::string_view name) const {
    return std::find_if(entries_.begin(), entries_.end(),
                        [name](const Entry& entry) { return entry.name == name; });
  }

  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace servesim
