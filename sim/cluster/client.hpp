/// The client side of a run: requests from the trace, held back by sessions and by a concurrency
/// limit.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/branch_hints.hpp"
#include "workload/trace_reader.hpp"

namespace servesim {

/// Hands out the requests of a trace in the order in which they are sent. Open-loop requests are
/// read as they are needed; the closed-loop ones of a session wait until the one before them has
/// ended.
class Client {
 public:
  /// `max_concurrency` 0: no limit.
  Client(TraceReader& trace, std::int64_t max_concurrency);

  /// When the next request is sent, as far as is known now; SimTime::max() when that hangs on
  /// another's end, or when there is none.
  SimTime next_send();
  /// Whether nothing is left to be sent, now or later.
  bool exhausted();
  /// Whether the end of a request can change next_send().
  bool ends_matter() const { return max_concurrency_ > 0 || held_back_ > 0; }

  /// The request that is sent at next_send(), its `arrival` set to that time, and its session's
  /// number (-1: none). REQUIRES: next_send() != SimTime::max(). The reference is good until the
  /// next call of any member.
  const Request& send(std::int64_t& session);

  /// The next open-loop request of the trace if it is read already and comes next, else null.
  const Request* peek_open();
  /// Takes it out unsent: it can never be served. REQUIRES: peek_open() != nullptr.
  void drop_open();

  /// A request that was sent has ended (completed or rejected) at `now`.
  void ended(std::int64_t session, SimTime now);

  /// Requests that were read and never sent: the run was stopped, or what they wait for never
  /// ended.
  std::vector<Request> unsent() const;

 private:
  struct Session {
    std::deque<Request> followers;
    std::int64_t outstanding = 0;  ///< requests of it that are ready, sent, or next in the trace
    bool started = false;
    SimTime last_end;
  };
  struct Ready {
    Request request;
    std::int64_t session;
    std::uint64_t sequence;
  };
  struct Later {
    bool operator()(const Ready& a, const Ready& b) const {
      return a.request.arrival != b.request.arrival ? a.request.arrival > b.request.arrival
                                                    : a.sequence > b.sequence;
    }
  };

  bool has_open() { return has_open_ || read_open(); }
  bool read_open();
  bool follower_is_next() {
    return rarely(!ready_.empty()) &&
           (!has_open() || ready_.front().request.arrival < open_.arrival);
  }
  void take_in_follower(Request request);
  void release_followers(std::int64_t session);
  std::int64_t number_of(const std::string& session);

  TraceReader& trace_;
  std::int64_t max_concurrency_;
  std::int64_t in_flight_ = 0;
  SimTime slot_free_;  ///< when the limit last had room again
  Request open_;       ///< the next open-loop request of the trace
  std::int64_t open_session_ = -1;
  bool has_open_ = false;
  bool at_end_ = false;
  Request sent_;
  std::vector<Ready> ready_;  ///< released followers, a heap
  std::uint64_t sequence_ = 0;
  std::int64_t held_back_ = 0;  ///< followers that wait for the one before them
  std::vector<Session> sessions_;
  std::unordered_map<std::string, std::int64_t> session_numbers_;
};

}  // namespace servesim
