#include "workload/trace_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace servesim {
namespace {

/// Counts arrivals from an origin.
class ShiftedReader final : public TraceReader {
 public:
  ShiftedReader(std::unique_ptr<TraceReader> inner, SimTime origin)
      : inner_(std::move(inner)), origin_(origin) {}

  bool next(Request& request) override {
    if (!inner_->next(request)) return false;
    if (!request.closed_loop) request.arrival -= origin_;
    return true;
  }

 private:
  std::unique_ptr<TraceReader> inner_;
  SimTime origin_;
};

}  // namespace

TraceSource::TraceSource(const std::string& path, TraceOptions options)
    : TraceSource(InputFile::open(path), std::move(options)) {}

TraceSource::TraceSource(std::shared_ptr<const InputFile> file, TraceOptions options)
    : file_(std::move(file)),
      options_(std::move(options)),
      format_(&choose_format(file_, options_)) {
  read_once();
}

void TraceSource::read_once() {
  auto cache = std::make_shared<TraceCache>();
  const std::unique_ptr<TraceReader> reader = format_->make(file_, options_);
  Request request;
  bool any_timed = false;
  while (reader->next(request)) {
    ++summary_.requests;
    summary_.closed_loop += request.closed_loop ? 1 : 0;
    summary_.input_tokens += request.input_tokens;
    summary_.output_tokens += request.output_tokens;
    if (!request.closed_loop) {
      if (any_timed && request.arrival < summary_.last_arrival) unsorted_ = true;
      summary_.first_arrival =
          any_timed ? std::min(summary_.first_arrival, request.arrival) : request.arrival;
      summary_.last_arrival = std::max(summary_.last_arrival, request.arrival);
      any_timed = true;
    }
    if (cache) cache->append(request);
    if (cache && cache->bytes() > options_.cache_bytes) cache.reset();
  }
  if (summary_.requests == 0) {
    throw InputError(fmt::format("{}: holds no request", file_->name()));
  }
  if (format_->absolute_times) origin_ = summary_.first_arrival;
  if (unsorted_ && !cache) {  // it turned out unsorted after the cache had been given up
    auto runs = std::make_shared<SortedRuns>(options_.cache_bytes);
    const std::unique_ptr<TraceReader> again = format_->make(file_, options_);
    while (again->next(request)) runs->append(request);
    runs->finish(origin_);
    sorted_ = std::move(runs);
  }
  if (cache) {
    if (unsorted_) cache->sort_by_arrival();
    cache->shift_arrivals(origin_);
  }
  cache_ = std::move(cache);
}

std::unique_ptr<TraceReader> TraceSource::open() const {
  if (cache_) return make_cache_reader(cache_);
  if (sorted_) return make_merging_reader(sorted_);
  std::unique_ptr<TraceReader> reader = format_->make(file_, options_);
  if (origin_ == SimTime()) return reader;
  return std::make_unique<ShiftedReader>(std::move(reader), origin_);
}

}  // namespace servesim
