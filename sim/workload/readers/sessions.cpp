/// Agentic sessions (WEKA, kv-cache-tester): JSON objects {id, block_size, requests: [...]}, one
/// alone, one per line, several one after another or in an array.
///
/// A session runs in closed loop. Its first request arrives at its own t; every next one starts
/// think_time after the end of the one before. Where think_time is missing, the gap in the trace
/// stands for it: t - (t + api_time of the one before).
/// A sub-agent (type "subagent") is nested in its session: its requests run in sequence where it
/// stands, in the parent's session and with the parent's hash ids. Its t is when it ended, so it
/// starts t - duration_ms - (end of the one before) after that end, and what follows it starts its
/// own t - (t of the sub-agent) later: the parent's think_time there spans the sub-agents' work.
/// Hash ids are local to a session and become global by mixing in its position in the file. There
/// are floor(in / block_size) of them; the last partial block has none. Outputs of 0 are kept.
#include <fmt/format.h>

#include <algorithm>

#include "workload/hash_blocks.hpp"
#include "workload/id_set.hpp"
#include "workload/json_fields.hpp"
#include "workload/json_stream.hpp"
#include "workload/readers/readers.hpp"

namespace servesim {
namespace {

enum Field : std::size_t { kId, kBlockSize, kHashScope, kRequests };
enum RequestField : std::size_t {
  kT,
  kType,
  kIn,
  kOut,
  kHashIds,
  kApiTime,
  kThinkTime,
  kDurationMs,
  kNested,
};

/// A closed-loop clock in the trace's own time.
struct SessionClock {
  bool first = true;      ///< no request has been read yet
  bool subagent = false;  ///< what was read last was a sub-agent
  SimTime end;            ///< when what was read last ended
};

SimTime gap(SimTime from, SimTime to) {
  return std::max(SimTime(), to - from);
}

class SessionsReader final : public TraceReader {
 public:
  SessionsReader(std::shared_ptr<const InputFile> file, const TraceOptions& options)
      : sessions_(std::move(file)),
        fields_({"id", "block_size", "hash_id_scope", "requests"}, JsonFields::Unknown::kAllowed),
        unit_ns_(options.unit_ns(kSecondNs)),
        block_option_(options.hash_block_size) {}

  bool next(Request& request) override {
    while (position_ == requests_.size()) {
      if (!read_session()) return false;
    }
    request = requests_[position_++];
    request.index = index_++;
    return true;
  }

 private:
  bool read_session() {
    simdjson::dom::element session;
    if (!sessions_.next(session)) return false;
    requests_.clear();
    position_ = 0;
    fields_.load(session, sessions_.location());
    constexpr std::int64_t kLargestBlock = std::int64_t{1} << 20;
    constexpr std::int64_t kDefaultBlock = 64;
    block_ = kDefaultBlock;
    if (block_option_ > 0) {
      block_ = block_option_;
    } else if (fields_.has(kBlockSize)) {
      block_ = fields_.whole(kBlockSize, 1, kLargestBlock, "a whole number from 1 to 1048576");
    }
    name_session();
    read_scope();
    SessionClock clock;
    read_requests(fields_.array(kRequests), "requests", clock);
    ++ordinal_;
    return true;
  }

  /// Some collections hold a session several times: the later ones get their position as suffix.
  void name_session() {
    session_.clear();
    if (fields_.has(kId)) fields_.text(kId, session_);
    if (session_.empty() || !names_.insert(session_)) session_ += fmt::format("#{}", ordinal_);
  }

  void read_scope() {
    std::string scope = "local";
    if (fields_.has(kHashScope)) fields_.text(kHashScope, scope);
    if (scope != "local" && scope != "global") {
      throw refused_value(fields_.location(), "hash_id_scope", scope, "'local' or 'global'");
    }
    local_ids_ = scope == "local";
  }

  void read_requests(simdjson::dom::array items, const std::string& path, SessionClock& clock) {
    JsonFields item(
        {"t", "type", "in", "out", "hash_ids", "api_time", "think_time", "duration_ms", "requests"},
        JsonFields::Unknown::kAllowed);
    std::size_t position = 0;
    for (const simdjson::dom::element element : items) {
      const std::string place = fmt::format("{}[{}].", path, position++);
      item.load(element, fields_.location(), place);
      if (item.has(kNested)) {
        read_subagent(item, place, clock);
      } else {
        read_request(item, clock);
      }
    }
  }

  void read_subagent(const JsonFields& item, const std::string& place, SessionClock& clock) {
    const SimTime end = item.time(kT, unit_ns_);
    const SimTime duration =
        item.has(kDurationMs) ? item.time(kDurationMs, kMillisecondNs) : SimTime();
    const SimTime start = std::max(SimTime(), end - duration);
    const std::size_t first_request = requests_.size();
    SessionClock inner;
    inner.first = clock.first;
    read_requests(item.array(kNested), place + "requests", inner);
    if (requests_.size() > first_request) {
      Request& opening = requests_[first_request];
      if (clock.first) {
        opening.arrival = start;
      } else {
        opening.delay = gap(clock.end, start);
      }
      opening.closed_loop = !clock.first;
      clock.first = false;
    }
    clock.subagent = true;
    clock.end = std::max(clock.end, end);
  }

  void read_request(const JsonFields& item, SessionClock& clock) {
    Request request;
    request.session = session_;
    const SimTime t = item.time(kT, unit_ns_);
    request.input_tokens = item.tokens(kIn);
    request.output_tokens = item.tokens(kOut);
    request.closed_loop = !clock.first;
    if (clock.first) {
      request.arrival = t;
    } else if (item.has(kThinkTime) && !clock.subagent) {
      request.delay = item.time(kThinkTime, unit_ns_);
    } else {
      request.delay = gap(clock.end, t);
    }
    clock.first = false;
    clock.subagent = false;
    clock.end = t + (item.has(kApiTime) ? item.time(kApiTime, unit_ns_) : SimTime());
    if (item.has(kHashIds)) take_hash_ids(item, request);
    requests_.push_back(std::move(request));
  }

  void take_hash_ids(const JsonFields& item, Request& request) const {
    request.hash_block = block_;
    item.hash_ids(kHashIds, request.hash_ids);
    check_hash_ids(request, item.location());
    if (!local_ids_) return;
    for (std::uint64_t& id : request.hash_ids) id = global_hash_id(ordinal_, id);
  }

  JsonStream sessions_;
  JsonFields fields_;
  std::int64_t unit_ns_;
  std::int64_t block_option_;
  std::int64_t block_ = 0;
  bool local_ids_ = true;
  std::uint64_t ordinal_ = 0;
  std::string session_;
  IdSet names_;
  std::vector<Request> requests_;
  std::size_t position_ = 0;
  std::uint64_t index_ = 0;
};

}  // namespace

TraceFormat sessions_format() {
  TraceFormat format;
  format.name = "sessions";
  format.description =
      "Agentic sessions of WEKA and kv-cache-tester: JSON objects with requests (t, in, out, "
      "hash_ids in blocks of 64, think_time in s) and nested sub-agents, replayed in closed loop.";
  format.shape = TraceFormat::Shape::kJson;
  format.signatures = {{"requests", "block_size"},
                       {"id", "requests", "block_size", "hash_id_scope"}};
  format.make = [](std::shared_ptr<const InputFile> file,
                   const TraceOptions& options) -> std::unique_ptr<TraceReader> {
    return std::make_unique<SessionsReader>(std::move(file), options);
  };
  return format;
}

}  // namespace servesim
