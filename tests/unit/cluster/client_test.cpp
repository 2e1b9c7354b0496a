/// When requests are sent: open loop, closed loop, under a limit.
#include "cluster/client.hpp"

#include "list_trace.hpp"
#include "support/catch.hpp"

using namespace servesim;
using testing::follower;
using testing::ListTrace;
using testing::timed;

namespace {

std::uint64_t send(Client& client, std::int64_t at_ms, std::int64_t* session = nullptr) {
  CHECK(client.next_send() == SimTime::from_ms(at_ms));
  std::int64_t number = -1;
  const Request& request = client.send(number);
  CHECK(request.arrival == SimTime::from_ms(at_ms));
  if (session != nullptr) *session = number;
  return request.index;
}

}  // namespace

TEST_CASE("open-loop requests are sent when they arrive") {
  ListTrace trace({timed(1, 1, 1), timed(5, 1, 1)});
  Client client(trace, 0);
  CHECK(send(client, 1) == 0);
  CHECK(send(client, 5) == 1);
  CHECK(client.next_send() == SimTime::max());
  CHECK(client.exhausted());
}

TEST_CASE("the next request of a session is sent its think time after the end of the last") {
  ListTrace trace({timed(0, 1, 1, "a"), follower(10, 1, 1, "a"), timed(50, 1, 1)});
  Client client(trace, 0);
  std::int64_t session = -1;
  CHECK(send(client, 0, &session) == 0);
  CHECK(client.next_send() == SimTime::from_ms(50));
  CHECK_FALSE(client.exhausted());
  client.ended(session, SimTime::from_ms(20));
  CHECK(send(client, 30) == 1);
  CHECK(send(client, 50) == 2);
  CHECK(client.exhausted());
}

TEST_CASE("a closed-loop session without a timed request starts by itself") {
  ListTrace trace({follower(10, 1, 1, "a"), follower(10, 1, 1, "a")});
  Client client(trace, 0);
  std::int64_t session = -1;
  CHECK(send(client, 0, &session) == 0);
  CHECK(client.next_send() == SimTime::max());
  client.ended(session, SimTime::from_ms(7));
  CHECK(send(client, 17) == 1);
}

TEST_CASE("under a limit a request is sent at the later of its arrival and a free slot") {
  ListTrace trace({timed(0, 1, 1), timed(1, 1, 1), timed(30, 1, 1)});
  Client client(trace, 1);
  CHECK(send(client, 0) == 0);
  CHECK(client.next_send() == SimTime::max());
  client.ended(-1, SimTime::from_ms(12));
  CHECK(send(client, 12) == 1);
  client.ended(-1, SimTime::from_ms(13));
  CHECK(send(client, 30) == 2);
}

TEST_CASE("what was read and not sent can be told") {
  ListTrace trace({timed(0, 1, 1, "a"), follower(10, 1, 1, "a"), timed(50, 1, 1)});
  Client client(trace, 0);
  send(client, 0);
  client.next_send();
  CHECK(client.unsent().size() == 2);
}
