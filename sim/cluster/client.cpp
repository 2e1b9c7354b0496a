#include "cluster/client.hpp"

#include <algorithm>
#include <utility>

namespace servesim {

Client::Client(TraceReader& trace, std::int64_t max_concurrency)
    : trace_(trace), max_concurrency_(max_concurrency) {}

std::int64_t Client::number_of(const std::string& session) {
  if (session.empty()) return -1;
  const auto [entry, added] = session_numbers_.try_emplace(session, std::ssize(sessions_));
  if (added) sessions_.emplace_back();
  return entry->second;
}

/// Reads on until an open-loop request is found: only those have a place in time of their own.
bool Client::read_open() {
  while (!has_open_ && !at_end_) {
    if (!trace_.next(open_)) {
      at_end_ = true;
    } else if (rarely(open_.closed_loop) && !open_.session.empty()) {
      take_in_follower(std::move(open_));
      open_ = Request{};
    } else {
      has_open_ = true;
      open_session_ = number_of(open_.session);
      if (open_session_ >= 0) ++sessions_[static_cast<std::size_t>(open_session_)].outstanding;
    }
  }
  return has_open_;
}

void Client::take_in_follower(Request request) {
  const std::int64_t number = number_of(request.session);
  sessions_[static_cast<std::size_t>(number)].followers.push_back(std::move(request));
  ++held_back_;
  release_followers(number);
}

void Client::release_followers(std::int64_t number) {
  Session& session = sessions_[static_cast<std::size_t>(number)];
  if (session.outstanding > 0 || session.followers.empty()) return;
  Ready ready{std::move(session.followers.front()), number, sequence_++};
  session.followers.pop_front();
  --held_back_;
  if (session.started) ready.request.arrival = session.last_end + ready.request.delay;
  ++session.outstanding;
  ready_.push_back(std::move(ready));
  std::push_heap(ready_.begin(), ready_.end(), Later{});
}

SimTime Client::next_send() {
  if (!has_open() && ready_.empty()) return SimTime::max();
  if (rarely(max_concurrency_ > 0) && in_flight_ >= max_concurrency_) return SimTime::max();
  const SimTime due = follower_is_next() ? ready_.front().request.arrival : open_.arrival;
  return std::max(due, slot_free_);
}

bool Client::exhausted() {
  return !has_open() && ready_.empty() && held_back_ == 0;
}

const Request& Client::send(std::int64_t& session) {
  const SimTime now = next_send();
  ++in_flight_;
  if (!follower_is_next()) {  // the buffer stays as it is until the next request is read into it
    session = open_session_;
    if (session >= 0) sessions_[static_cast<std::size_t>(session)].started = true;
    has_open_ = false;
    open_.arrival = now;
    return open_;
  }
  std::pop_heap(ready_.begin(), ready_.end(), Later{});
  sent_ = std::move(ready_.back().request);
  session = ready_.back().session;
  ready_.pop_back();
  sessions_[static_cast<std::size_t>(session)].started = true;
  sent_.arrival = now;
  return sent_;
}

const Request* Client::peek_open() {
  return has_open() && !follower_is_next() ? &open_ : nullptr;
}

void Client::drop_open() {
  has_open_ = false;
  ++in_flight_;
  ended(open_session_, open_.arrival);
}

void Client::ended(std::int64_t number, SimTime now) {
  if (rarely(max_concurrency_ > 0) && in_flight_-- >= max_concurrency_)
    slot_free_ = std::max(slot_free_, now);
  if (number < 0) return;
  Session& session = sessions_[static_cast<std::size_t>(number)];
  session.started = true;
  session.last_end = std::max(session.last_end, now);
  --session.outstanding;
  release_followers(number);
}

std::vector<Request> Client::unsent() const {
  std::vector<Request> all;
  if (has_open_) all.push_back(open_);
  for (const Ready& ready : ready_) all.push_back(ready.request);
  for (const Session& session : sessions_) {
    all.insert(all.end(), session.followers.begin(), session.followers.end());
  }
  return all;
}

}  // namespace servesim
