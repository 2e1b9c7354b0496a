#include "workload/trace_cache.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace servesim {
namespace {

class CacheReader final : public TraceReader {
 public:
  explicit CacheReader(std::shared_ptr<const TraceCache> cache) : cache_(std::move(cache)) {}

  bool next(Request& request) override {
    if (position_ == cache_->size()) return false;
    cache_->read(position_++, request);
    return true;
  }

 private:
  std::shared_ptr<const TraceCache> cache_;
  std::size_t position_ = 0;
};

}  // namespace

void TraceCache::append(const Request& request) {
  Row row{};
  row.index = request.index;
  row.time_ns = request.closed_loop ? request.delay.ns() : request.arrival.ns();
  row.closed_loop = request.closed_loop;
  row.input_tokens = static_cast<std::int32_t>(request.input_tokens);
  row.output_tokens = static_cast<std::int32_t>(request.output_tokens);
  row.priority = request.priority;
  row.extra = append_extra(request) & kNone;
  rows_.push_back(row);
}

std::uint32_t TraceCache::append_extra(const Request& request) {
  if (request.id.empty() && request.session.empty() && request.hash_ids.empty() &&
      request.hash_block == Request{}.hash_block) {
    return kNone;
  }
  Extra extra;
  extra.id_length = static_cast<std::uint32_t>(request.id.size());
  extra.session_length = static_cast<std::uint32_t>(request.session.size());
  append_names(request, extra);
  extra.hash_count = static_cast<std::uint32_t>(request.hash_ids.size());
  extra.hash_block = static_cast<std::int32_t>(request.hash_block);
  extra.hash_ids = hash_ids_.append(request.hash_ids.data(), request.hash_ids.size());
  extras_.push_back(extra);
  return static_cast<std::uint32_t>(extras_.size() - 1);
}

/// The name of a session is kept once for requests of it that follow each other.
void TraceCache::append_names(const Request& request, Extra& extra) {
  if (request.id.empty() && !extras_.empty() && extras_.back().id_length == 0 &&
      session(extras_.back()) == request.session) {
    extra.names = extras_.back().names;
    return;
  }
  name_.assign(request.id).append(request.session);
  extra.names = names_.append(name_.data(), name_.size());
}

void TraceCache::read(std::size_t position, Request& request) const {
  const Row& row = rows_[position];
  request.index = row.index;
  request.closed_loop = row.closed_loop;
  request.arrival = SimTime(row.closed_loop ? 0 : row.time_ns);
  request.delay = SimTime(row.closed_loop ? row.time_ns : 0);
  request.input_tokens = row.input_tokens;
  request.output_tokens = row.output_tokens;
  request.priority = row.priority;
  if (row.extra == kNone) {  // so in most traces
    request.id.clear();
    request.session.clear();
    request.hash_block = 0;
    request.hash_ids.clear();
    return;
  }
  const Extra& extra = extras_[row.extra];
  request.id.assign(id(extra));
  request.session.assign(session(extra));
  request.hash_block = extra.hash_block;
  request.hash_ids.assign(extra.hash_ids, extra.hash_ids + extra.hash_count);
}

std::size_t TraceCache::bytes() const {
  return rows_.size() * sizeof(Row) + extras_.size() * sizeof(Extra) + names_.bytes() +
         hash_ids_.bytes();
}

void TraceCache::sort_by_arrival() {
  std::vector<std::int64_t> keys(rows_.size());
  std::unordered_map<std::string_view, std::int64_t> session_key;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::string_view name = session(extra_of(rows_[i]));
    if (rows_[i].closed_loop) {
      keys[i] = session_key[name];
    } else {
      keys[i] = rows_[i].time_ns;
      if (!name.empty()) session_key[name] = keys[i];
    }
  }
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&keys](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  Blocks<Row> sorted;
  for (const std::size_t i : order) sorted.push_back(rows_[i]);
  rows_.swap(sorted);
}

void TraceCache::shift_arrivals(SimTime origin) {
  for (Row& row : rows_) {
    if (!row.closed_loop) row.time_ns -= origin.ns();
  }
}

std::unique_ptr<TraceReader> make_cache_reader(std::shared_ptr<const TraceCache> cache) {
  return std::make_unique<CacheReader>(std::move(cache));
}

}  // namespace servesim
