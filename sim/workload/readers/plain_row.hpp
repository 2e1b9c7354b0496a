/// A short cut for the rows that nearly all Mooncake traces consist of.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace servesim {

/// {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}: these
/// keys in any order, each once, hash_ids perhaps absent, whole numbers below 10^15 only.
struct PlainRow {
  std::int64_t timestamp = 0;
  std::int64_t input_length = 0;
  std::int64_t output_length = 0;
  bool has_hash_ids = false;
};

/// Reads a line that is exactly such an object. False for anything else, valid JSON or not: the
/// general parser judges it. Reads at most one byte past the end of `line`, which must be readable.
bool read_plain_row(std::string_view line, PlainRow& row, std::vector<std::uint64_t>& hash_ids);

}  // namespace servesim
