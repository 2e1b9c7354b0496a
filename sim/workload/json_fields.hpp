/// Typed reading of the fields of one JSON object, refusing what is missing, doubled or bad.
#pragma once

#include <simdjson.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workload/field_text.hpp"

namespace servesim {

/// The known fields of one kind of object, numbered in the order of their names. simdjson's
/// document interface is used because it checks every byte of a line, also of fields not asked for.
class JsonFields {
 public:
  enum class Unknown { kAllowed, kRefused };
  static constexpr std::size_t kMostFields = 16;

  JsonFields(std::vector<std::string> names, Unknown unknown);

  /// Takes the fields of `value`; `prefix` says where in the line it stands ("requests[3]."). Valid
  /// until the parser of `value` goes on. Throws InputError: not an object, a key given twice, an
  /// unknown key where these are refused.
  void load(simdjson::dom::element value, const Location& where, std::string prefix = {});

  /// Given, and not null.
  bool has(std::size_t field) const { return (given_ >> field & 1U) != 0; }
  /// Which of two spellings of one field is given, `a` when neither. Throws InputError: both.
  std::size_t either(std::size_t a, std::size_t b) const;
  /// Throws InputError, suggesting a near name, when the field is not given.
  simdjson::dom::element require(std::size_t field) const;

  /// Each throws InputError when the field is missing or not of that kind or range.
  std::int64_t tokens(std::size_t field) const;
  std::int64_t whole(std::size_t field, std::int64_t low, std::int64_t high,
                     std::string_view accepted) const;
  SimTime time(std::size_t field, std::int64_t unit_ns) const;
  void hash_ids(std::size_t field, std::vector<std::uint64_t>& ids) const;
  simdjson::dom::array array(std::size_t field) const;
  /// A string as it is, or a whole number in decimal.
  void text(std::size_t field, std::string& out) const;

  InputError error(std::size_t field, std::string_view message) const;
  const Location& location() const { return where_; }

 private:
  void take(std::string_view key, simdjson::dom::element value);
  void check_unknown() const;
  InputError refused(std::size_t field, simdjson::dom::element value,
                     std::string_view accepted) const;

  std::vector<std::string> names_;
  Unknown unknown_;
  std::array<simdjson::dom::element, kMostFields> values_;
  std::size_t next_ = 0;
  std::uint32_t seen_ = 0;
  std::uint32_t given_ = 0;
  std::vector<std::string_view> unknown_keys_;
  Location where_;
  std::string prefix_;
};

}  // namespace servesim
