/// Sorting a trace that is too large for memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "workload/trace_reader.hpp"

namespace servesim {

/// Requests in the order of their arrivals, equal ones in the order in which they were added:
/// sorted pieces in an unlinked temporary file, merged while they are read. A closed-loop request
/// goes with the last timed one of its session.
class SortedRuns {
 public:
  /// `piece_bytes`: how much is sorted in memory at a time. Throws InputError when there is no room
  /// for a file.
  explicit SortedRuns(std::size_t piece_bytes);

  void append(const Request& request);
  /// Ends the appending. Arrivals will count from `origin`.
  void finish(SimTime origin);

 private:
  friend class MergingReader;
  struct Piece {
    std::int64_t begin, end;  ///< bytes in the file
  };
  struct Pending {
    std::int64_t key;
    std::size_t offset, length;  ///< of the record in `records_`
  };

  void write_piece();

  std::size_t piece_bytes_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::int64_t written_ = 0;
  std::vector<Piece> pieces_;
  std::vector<char> records_;
  std::vector<Pending> pending_;
  std::unordered_map<std::string, std::int64_t> session_keys_;
  SimTime origin_;
};

/// Reads runs from their start; any number may be read at once, also in different threads.
std::unique_ptr<TraceReader> make_merging_reader(std::shared_ptr<const SortedRuns> runs);

}  // namespace servesim
