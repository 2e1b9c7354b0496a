/// Whole runs on a few requests, against closed forms.
#include "cluster/simulation.hpp"

#include "cost/linear_cost_model.hpp"
#include "list_trace.hpp"
#include "run.hpp"
#include "sched/policies/policies.hpp"
#include "support/catch.hpp"

using namespace servesim;
using testing::follower;
using testing::ListTrace;
using testing::timed;

namespace {

using testing::Run;

}  // namespace

TEST_CASE("one request: a prefill step and a decode step per further token") {
  Run run;
  const auto fates = run({timed(5, 100, 4)});
  const RequestRecord& r = fates.at(0);
  CHECK(r.status == RequestStatus::kCompleted);
  CHECK(r.first_token == SimTime::from_us(5000 + 2000));
  CHECK(r.last_token == SimTime::from_us(5000 + 2000 + 3 * 1010));
  CHECK(run.stats[0].steps == 4);
  CHECK(run.stats[0].busy == SimTime::from_us(2000 + 3 * 1010));
}

TEST_CASE(
    "front-end times are the client's, host time delays a step that has nothing to hide behind") {
  Run run;
  run.config.host = {SimTime::from_ms(3), SimTime::from_ms(5), SimTime::from_ms(2)};
  const RequestRecord r = run({timed(0, 100, 1)}).at(0);
  CHECK(r.arrival == SimTime(0));
  CHECK(r.first_token == SimTime::from_us(5000 + 3000 + 2000 + 2000));
}

TEST_CASE("asynchronous scheduling hides the host behind the step before") {
  Run run;
  run.config.scheduler.async_scheduling = true;
  run.config.host.step = SimTime::from_us(500);
  const RequestRecord r = run({timed(0, 100, 11)}).at(0);
  CHECK(r.first_token == SimTime::from_us(500 + 2000));
  CHECK(r.last_token == SimTime::from_us(500 + 2000 + 10 * 1010));
}

TEST_CASE("every request ends in exactly one bucket") {
  Run run;
  const auto fates = run({timed(0, 10, 0), timed(0, 0, 10), timed(1, 100, 10), timed(2, 9000, 10),
                          timed(3, 16000, 10)});
  REQUIRE(fates.size() == 5);
  CHECK(fates.at(0).reason == "zero output tokens");
  CHECK(fates.at(1).reason == "zero input tokens");
  CHECK(fates.at(2).status == RequestStatus::kCompleted);
  CHECK(fates.at(3).reason == "longer than max_model_len");
  CHECK(fates.at(4).status == RequestStatus::kRejected);
}

TEST_CASE("a stopped run tells of what it left") {
  Run run;
  run.control.stop = true;
  const auto fates = run({timed(0, 10, 10), timed(1, 10, 10)});
  for (const auto& [index, record] : fates) CHECK(record.status == RequestStatus::kUnfinished);
}

TEST_CASE("one replica behind any router equals no choice at all") {
  std::vector<Request> requests;
  for (int i = 0; i < 50; ++i) {
    requests.push_back(
        timed(3 * i, 50 + 7 * i, 1 + i % 13, i % 4 == 0 ? "" : "s" + std::to_string(i % 7)));
  }
  const auto expected = Run()(requests);
  for (const RouterFactory& router :
       {RouterFactory(make_random), RouterFactory(make_least_loaded),
        RouterFactory(make_join_shortest_queue), RouterFactory(make_power_of_two),
        RouterFactory(make_session_sticky), RouterFactory(make_prefix_aware)}) {
    Run run;
    run.router = router;
    for (const auto& [index, record] : run(requests)) {
      CHECK(record.first_token == expected.at(index).first_token);
      CHECK(record.last_token == expected.at(index).last_token);
    }
  }
}

TEST_CASE("replicas with independent traffic do as one with its share") {
  std::vector<Request> share;
  std::vector<Request> all;
  for (int i = 0; i < 40; ++i) {
    share.push_back(timed(10 * i, 100, 20));
    for (int replica = 0; replica < 3; ++replica) all.push_back(share.back());
  }
  Run one;
  Run three;
  three.config.replicas = 3;
  const auto alone = one(share);
  const auto together = three(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(together.at(i).replica == static_cast<std::int32_t>(i % 3));
    CHECK(together.at(i).last_token == alone.at(i / 3).last_token);
  }
}

TEST_CASE("least-loaded routing counts the tokens that are outstanding") {
  Run run;
  run.router = make_least_loaded;
  run.config.replicas = 2;
  const auto fates =
      run({timed(0, 5000, 10), timed(0, 100, 10), timed(0, 100, 10), timed(500, 100, 1)});
  CHECK(fates.at(0).replica == 0);
  CHECK(fates.at(1).replica == 1);
  CHECK(fates.at(2).replica == 1);
  CHECK(fates.at(3).replica == 0);  // everything has ended by then
}

TEST_CASE("a session waits for its own end, and finds what it generated") {
  Run run;
  run.config.scheduler.enable_prefix_caching = true;
  const auto fates =
      run({timed(0, 100, 60, "s"), follower(20, 200, 10, "s"), follower(0, 250, 10, "s")});
  CHECK(fates.at(1).arrival == fates.at(0).last_token + SimTime::from_ms(20));
  CHECK(fates.at(2).arrival == fates.at(1).last_token);
  CHECK(fates.at(1).prefix_hit_tokens == 144);  // 159 computed tokens in whole blocks
  CHECK(fates.at(2).prefix_hit_tokens == 208);
}

TEST_CASE("static batching: the batch ends with its longest, and the next one waits for that") {
  Run run;
  run.policy = make_static;
  run.config.scheduler.max_num_seqs = 2;
  const auto fates = run({timed(0, 100, 3), timed(0, 100, 11), timed(0, 100, 1)});
  const SimTime prefill = SimTime::from_us(1000 + 200 * 10);
  const SimTime step = SimTime::from_us(1020);  // both slots, to the end
  CHECK(fates.at(0).first_token == prefill);
  CHECK(fates.at(0).last_token == prefill + step * 2);
  CHECK(fates.at(1).last_token == prefill + step * 10);
  CHECK(fates.at(2).scheduled == fates.at(1).last_token);
}

TEST_CASE("KV bytes add up to the pool's") {
  Run run;
  run({timed(0, 100, 50), timed(1, 333, 7)});
  const KvIntegral& kv = run.stats[0].kv;
  CHECK(kv.used > 0);
  CHECK(kv.internal > 0);
  CHECK(kv.reserved == 0);
  CHECK(kv.used + kv.internal + kv.reserved < 999 * 16 * kv.elapsed_s);
}
