/// Parsed requests in compact form, so that a trace is parsed once for many runs.
#pragma once

#include <algorithm>
#include <boost/container/deque.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workload/trace_reader.hpp"

namespace servesim {

/// Copies of short arrays in large blocks that never move.
template <typename T>
class Arena {
 public:
  const T* append(const T* data, std::size_t count) {
    if (count > left_) {
      left_ = std::max(count, kBlockBytes / sizeof(T));
      blocks_.emplace_back(new T[left_]);
      free_ = blocks_.back().get();
      bytes_ += left_ * sizeof(T);
    }
    T* const copy = free_;
    std::copy_n(data, count, copy);
    free_ += count;
    left_ -= count;
    return copy;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

  std::vector<std::unique_ptr<T[]>> blocks_;
  T* free_ = nullptr;
  std::size_t left_ = 0;
  std::size_t bytes_ = 0;
};

/// An append-only list of requests: 32 bytes each, and 40 more plus names and hash ids for those
/// that have any.
class TraceCache {
 public:
  void append(const Request& request);
  void read(std::size_t position, Request& request) const;
  std::size_t size() const { return rows_.size(); }
  std::size_t bytes() const;

  /// Sorts by arrival. A closed-loop request goes with the last timed one of its session, and equal
  /// arrivals keep their order.
  void sort_by_arrival();
  /// Subtracts `origin` from every arrival that is not closed loop.
  void shift_arrivals(SimTime origin);

 private:
  static constexpr std::uint32_t kNone = (std::uint32_t{1} << 31) - 1;
  struct Row {
    std::int64_t time_ns;  ///< arrival, or delay when closed loop
    std::uint64_t index;   ///< position in the trace
    std::int32_t input_tokens;
    std::int32_t output_tokens;
    std::int32_t priority;
    std::uint32_t extra : 31;  ///< kNone: neither names nor hash ids
    std::uint32_t closed_loop : 1;
  };
  /// What most traces have none of.
  struct Extra {
    const char* names = nullptr;  ///< the id, then the session
    const std::uint64_t* hash_ids = nullptr;
    std::uint32_t id_length = 0;
    std::uint32_t session_length = 0;
    std::uint32_t hash_count = 0;
    std::int32_t hash_block = 0;
  };

  std::uint32_t append_extra(const Request& request);
  void append_names(const Request& request, Extra& extra);
  Extra extra_of(const Row& row) const { return row.extra == kNone ? Extra{} : extras_[row.extra]; }
  static std::string_view id(const Extra& extra) { return {extra.names, extra.id_length}; }
  static std::string_view session(const Extra& extra) {
    return {extra.names + extra.id_length, extra.session_length};
  }

  /// Grows without moving what it holds, in blocks that are large to the allocator.
  template <typename T>
  using Blocks = boost::container::deque<
      T, void, boost::container::deque_options_t<boost::container::block_size<2048>>>;

  Blocks<Row> rows_;
  Blocks<Extra> extras_;
  Arena<char> names_;
  std::string name_;  // scratch
  Arena<std::uint64_t> hash_ids_;
};

/// Reads a cache from its start.
std::unique_ptr<TraceReader> make_cache_reader(std::shared_ptr<const TraceCache> cache);

}  // namespace servesim
