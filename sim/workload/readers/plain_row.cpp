#include "workload/readers/plain_row.hpp"

#include <cstring>
#include <iterator>

namespace servesim {
namespace {

/// A position in the line. Every step checks what it passes, so it never leaves the line by more
/// than the byte that ends it.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool at_end() const { return at_ == end_; }

  bool skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  void skip_spaces() {
    while (at_ != end_ && *at_ == ' ') ++at_;
  }
  /// Passes `separator` with spaces around it.
  bool skip_separator(char separator) {
    skip_spaces();
    if (!skip(separator)) return false;
    skip_spaces();
    return true;
  }
  bool skip_text(std::string_view text) {
    if (static_cast<std::size_t>(end_ - at_) < text.size()) return false;
    if (std::memcmp(at_, text.data(), text.size()) != 0) return false;
    at_ += text.size();
    return true;
  }
  bool number(std::uint64_t& value) {
    constexpr std::ptrdiff_t kMostDigits = 15;
    const char* const first = at_;
    std::uint64_t result = 0;
    while (at_ != end_ && static_cast<unsigned char>(*at_ - '0') < 10) {
      result = result * 10 + static_cast<std::uint64_t>(*at_++ - '0');
    }
    const std::ptrdiff_t digits = at_ - first;
    value = result;
    return digits > 0 && digits <= kMostDigits && (digits == 1 || *first != '0');
  }

 private:
  const char* at_;
  const char* end_;
};

bool read_ids(Cursor& cursor, std::vector<std::uint64_t>& ids) {
  if (!cursor.skip('[')) return false;
  cursor.skip_spaces();
  do {
    std::uint64_t id = 0;
    if (!cursor.number(id)) return false;
    ids.push_back(id);
  } while (cursor.skip_separator(','));
  return cursor.skip(']');
}

constexpr std::string_view kKeys[] = {"\"timestamp\"", "\"input_length\"", "\"output_length\"",
                                      "\"hash_ids\""};
constexpr unsigned kHashIds = 3;

/// The key at the cursor; as many as there are keys when it is none of them. `expected` is tried
/// first.
unsigned read_key(Cursor& cursor, unsigned expected) {
  for (unsigned tried = 0; tried < std::size(kKeys); ++tried) {
    const unsigned key = (expected + tried) % static_cast<unsigned>(std::size(kKeys));
    if (cursor.skip_text(kKeys[key])) return key;
  }
  return static_cast<unsigned>(std::size(kKeys));
}

}  // namespace

bool read_plain_row(std::string_view line, PlainRow& row, std::vector<std::uint64_t>& hash_ids) {
  Cursor cursor(line);
  std::uint64_t values[3] = {0, 0, 0};
  unsigned seen = 0;
  unsigned expected = 0;
  hash_ids.clear();
  if (!cursor.skip('{')) return false;
  cursor.skip_spaces();
  do {
    const unsigned key = read_key(cursor, expected);
    if (key == std::size(kKeys) || (seen >> key & 1U) != 0 || !cursor.skip_separator(':'))
      return false;
    seen |= 1U << key;
    expected = key + 1;
    if (!(key == kHashIds ? read_ids(cursor, hash_ids) : cursor.number(values[key]))) return false;
  } while (cursor.skip_separator(','));
  if (!cursor.skip('}') || !cursor.at_end() || (seen & 7U) != 7U) return false;
  row.timestamp = static_cast<std::int64_t>(values[0]);
  row.input_length = static_cast<std::int64_t>(values[1]);
  row.output_length = static_cast<std::int64_t>(values[2]);
  row.has_hash_ids = (seen >> kHashIds & 1U) != 0;
  return true;
}

}  // namespace servesim
