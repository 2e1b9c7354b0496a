/// A window of a run as a trace for Perfetto and chrome://tracing (--timeline).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/observer.hpp"
#include "report/atomic_file.hpp"

namespace servesim {

/// Seconds after the first arrival.
struct TimelineWindow {
  double start_s = 0, end_s = 60;
};

/// "START:END", either may be left out. Throws InputError.
TimelineWindow parse_timeline_window(std::string_view text);

/// Writes the Trace Event Format: a process per replica with its steps (complete events), its
/// requests (nestable asynchronous events: queued, prefill, decode and within them preempted, KV
/// transfer) and counters (batch, waiting, KV tokens), and one for links. Events are sorted by
/// time; requests that cross the edge of the window are cut there. Times are microseconds after the
/// first arrival.
class TimelineWriter : public Observer {
 public:
  /// Events kept at most; later ones are dropped and counted.
  static constexpr std::size_t kMostEvents = 1'000'000;

  /// Gzipped when `path` ends in .gz; .json or .json.gz. Throws InputError for any other name and
  /// for a path that cannot be written.
  TimelineWriter(const std::string& path, TimelineWindow window);

  StepWatch watch(SimTime first_arrival) override;
  void on_request(const RequestRecord& record) override;
  void on_steps(const StepReport& report) override;
  void on_preempted(std::uint64_t index, SimTime at) override;
  void on_resumed(std::uint64_t index, SimTime at) override;
  void on_link(const LinkReport& report) override;
  void on_transfer(const TransferReport& report) override;

  /// Writes the events. `title` names the run and `command` is the one that made it.
  void finish(const std::string& title, const std::string& command);
  void close() { file_.close(); }
  /// Puts the finished file in place.
  void commit() { file_.commit(); }

  /// What a user must know of what the window leaves out; empty when it holds the whole run.
  std::string warning() const;
  std::size_t events() const { return events_.size(); }

 private:
  struct Event {
    std::int64_t ns;   ///< after the first arrival
    std::string json;  ///< without "ts"
  };
  struct RateChange {
    SimTime at;
    double bytes_per_s;
  };
  struct Span {
    SimTime begin, end;
    std::string name, args;
  };

  std::int64_t ns_of(SimTime time) const { return (time - origin_).ns(); }
  SimTime clipped(SimTime time) const { return std::clamp(time, from_, until_); }
  bool overlaps(SimTime begin, SimTime end) const { return begin < until_ && end > from_; }
  void add(SimTime at, std::string json);
  void add_counter(SimTime at, std::int32_t replica, std::string_view name, std::string args);
  void add_slice(const StepReport& report);
  void add_link_counters();
  void add_nested(std::int32_t replica, std::uint64_t index, const std::vector<Span>& spans);
  std::string preamble(const std::string& title, const std::string& command) const;

  AtomicFile file_;
  bool gzip_;
  TimelineWindow window_;
  SimTime origin_, from_, until_, last_;
  std::vector<Event> events_;
  std::size_t dropped_ = 0;
  std::int32_t replicas_ = 0;
  int stages_ = 0;  ///< of their pipelines; 0: none
  bool has_links_ = false;
  std::map<std::string, std::vector<RateChange>> links_;
  std::map<std::uint64_t, std::vector<Span>> inner_;  ///< preemptions and transfers, by request
  std::map<std::pair<std::int32_t, std::string>, std::string> counters_;  ///< last values
};

}  // namespace servesim
