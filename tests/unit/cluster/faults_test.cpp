/// Replicas that die, links that drop, clients that give up: nothing is lost.
#include "core/error.hpp"
#include "core/rng.hpp"
#include "kv/region_rules.hpp"
#include "list_trace.hpp"
#include "net/topology_loader.hpp"
#include "run.hpp"
#include "support/catch.hpp"

using namespace servesim;
using testing::Run;
using testing::timed;

namespace {

using Kind = ScenarioEvent::Kind;

ScenarioEvent down(std::int64_t at_ms, std::size_t replica) {
  return {SimTime::from_ms(at_ms), Kind::kReplicaDown, replica, 0, 1};
}
ScenarioEvent up(std::int64_t at_ms, std::size_t replica) {
  return {SimTime::from_ms(at_ms), Kind::kReplicaUp, replica, 0, 1};
}
ScenarioEvent bandwidth(std::int64_t at_ms, LinkId link, double share) {
  return {SimTime::from_ms(at_ms), Kind::kLink, 0, link, share};
}

std::vector<Request> steady(int count, std::int64_t every_ms) {
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) requests.push_back(timed(i * every_ms, 100 + i % 37, 20));
  return requests;
}

std::shared_ptr<DisaggregatedConfig> decode_pool(const SchedulerConfig& scheduler,
                                                 std::size_t replicas) {
  auto decode = std::make_shared<DisaggregatedConfig>();
  decode->scheduler = scheduler;
  decode->block_bytes = 1e6;
  const LinkSpec link{"wire", 1e9, SimTime(0), true};
  decode->topology = std::make_shared<Topology>(star(link, replicas));
  for (VertexId port = 0; port < replicas; ++port) decode->ports.push_back({port});
  return decode;
}

/// One of the ways in which a single pool may keep or give up KV.
void vary_memory(SchedulerConfig& config, std::uint64_t which) {
  switch (which) {
    case 0:
      config.preemption_mode = PreemptionMode::kSwap;
      config.swap_blocks = 50;
      break;
    case 1:
      config.preemption_mode = PreemptionMode::kStall;
      break;
    case 2:
      config.region_rule = region_pow2;
      config.enable_prefix_caching = false;
      break;
    case 3:
      config.layer_groups = {1, 1, 33, 2, 1};
      config.enable_prefix_caching = false;
      break;
    case 4:
      config.offload.tiers = {{"cpu", 50, 1e-5, 1e-6}};
      config.enable_prefix_caching = true;
      break;
    case 5:
      config.speculative.method = SpeculativeMethod::kNgram;
      config.speculative.num_speculative_tokens = 3;
      config.speculative.acceptance_rate = 0.7;
      break;
    case 6:
      config.preemption_mode = PreemptionMode::kSwap;
      config.swap_blocks = 50;
      config.offload.tiers = {{"cpu", 50, 1e-5, 1e-6}};
      config.enable_prefix_caching = true;
      break;
    case 7:
      config.pipeline_parallel = 3;
      config.async_scheduling = false;
      break;
    default:
      break;
  }
}

}  // namespace

TEST_CASE("what was in flight on a replica that dies begins anew on another", "[faults]") {
  Run run;
  run.config.replicas = 2;
  run.config.scenario = {down(5, 0)};
  const auto fates = run({timed(0, 100, 20), timed(0, 100, 20)});
  const SimTime alone = SimTime::from_us(2000 + 19 * 1010);
  CHECK(fates.at(0).status == RequestStatus::kCompleted);
  CHECK(fates.at(0).replica == 1);
  CHECK(fates.at(0).first_token > SimTime::from_ms(5));
  CHECK(fates.at(1).replica == 1);
  CHECK(fates.at(1).last_token > alone);  // it has company
  CHECK(run.outcome.faults.rerouted == 1);
  CHECK(run.stats[0].steps >= 3);  // what it did before counts
}

TEST_CASE("requests wait while nothing is up, and are unfinished if it stays so", "[faults]") {
  Run run;
  run.config.scenario = {down(5, 0), up(100, 0)};
  auto fates = run({timed(0, 100, 20), timed(50, 100, 20)});
  CHECK(fates.at(0).scheduled == SimTime::from_ms(100));
  CHECK(fates.at(1).scheduled == SimTime::from_ms(100));
  Run dead;
  dead.config.scenario = {down(5, 0)};
  fates = dead({timed(0, 100, 20), timed(50, 100, 20)});
  for (const auto& [index, r] : fates) {
    CHECK(r.status == RequestStatus::kUnfinished);
    CHECK(r.reason == "no replica was up");
  }
}

TEST_CASE("a prompt whose KV finds no decode replica waits for one", "[faults]") {
  for (const bool comes_back : {true, false}) {
    Run run;
    run.config.disaggregated = decode_pool(run.config.scheduler, 2);
    run.config.scenario = {down(1, 1)};
    if (comes_back) run.config.scenario.push_back(up(100, 1));
    const auto r = run({timed(0, 100, 3)}).at(0);
    CHECK(r.status == (comes_back ? RequestStatus::kCompleted : RequestStatus::kUnfinished));
    CHECK(r.reason == (comes_back ? "" : "no replica was up"));
    if (comes_back) CHECK(r.first_token > SimTime::from_ms(100));
  }
}

TEST_CASE("pools refuse KV that cannot be sent or has a second home", "[faults]") {
  const auto refuses = [](const auto& change) {
    for (const bool of_decode : {false, true}) {
      Run run;
      const auto decode = decode_pool(run.config.scheduler, 2);
      run.config.disaggregated = decode;
      change(of_decode ? decode->scheduler : run.config.scheduler);
      CHECK_THROWS_AS(run({timed(0, 100, 3)}), InputError);
    }
  };
  refuses([](SchedulerConfig& c) { c.preemption_mode = PreemptionMode::kStall; });
  refuses([](SchedulerConfig& c) { c.preemption_mode = PreemptionMode::kSwap; });
  refuses([](SchedulerConfig& c) { c.region_rule = region_pow2; });
  refuses([](SchedulerConfig& c) { c.layer_groups = {1, 1, 33, 2, 1}; });
  refuses([](SchedulerConfig& c) { c.offload.tiers = {{"cpu", 50, 1e-5, 1e-6}}; });
}

TEST_CASE("a scenario that nobody lives to see does not prolong the run", "[faults]") {
  Run run;
  run.config.scenario = {down(1'000'000, 0), up(2'000'000, 0)};
  run({timed(0, 100, 5)});
  CHECK(run.stats[0].kv.elapsed_s < 1);
}

TEST_CASE("a client that gives up frees what it held", "[faults]") {
  Run run;
  run.config.scheduler.num_gpu_blocks = 1 + 20;
  run.config.request_timeout = SimTime::from_ms(30);
  // The first fills the pool and would take 100 ms; the second gets its place when it is given up.
  const auto fates = run({timed(0, 200, 100), timed(20, 200, 5)});
  CHECK(fates.at(0).status == RequestStatus::kUnfinished);
  CHECK(fates.at(0).reason == "timed out");
  CHECK(fates.at(0).scheduled == SimTime(0));  // what it had until then is told
  CHECK(fates.at(0).first_token == SimTime::from_us(3000));
  CHECK(fates.at(0).generated_tokens == 27);
  CHECK(fates.at(1).status == RequestStatus::kCompleted);
  CHECK(fates.at(1).scheduled >= SimTime::from_ms(30));
  CHECK(run.outcome.faults.timed_out == 1);
}

TEST_CASE("rows of those who give up have their preemptions", "[faults]") {
  Run run;
  run.config.scheduler.num_gpu_blocks = 1 + 30;
  run.config.request_timeout = SimTime::from_ms(60);
  std::int64_t preemptions = 0;
  std::int64_t gave_up = 0;
  for (const auto& [index, r] : run(steady(40, 3))) {
    preemptions += r.preemptions;
    gave_up += r.status == RequestStatus::kUnfinished && r.preemptions > 0 ? 1 : 0;
  }
  CHECK(gave_up > 0);
  CHECK(preemptions == run.stats[0].preemptions);
}

TEST_CASE("a step that a replica's death cuts off counts up to then", "[faults]") {
  for (const std::int64_t stages : {1, 3}) {
    Run run;
    run.config.scheduler.max_num_batched_tokens = 8192;
    run.config.scheduler.pipeline_parallel = stages;
    run.config.scenario = {down(4, 0), up(5, 0)};
    run({timed(0, 2000, 1)});  // 21 ms
    CHECK(run.stats[0].busy.ms() * static_cast<double>(stages) == Approx(4 + 21));
    CHECK(run.stats[0].seconds[static_cast<std::size_t>(Component::kOther)] ==
          Approx((4 + 21) * 1e-3));
  }
}

TEST_CASE("work that ends at its deadline has met it", "[faults]") {
  Run run;
  run.config.request_timeout = SimTime::from_us(2000);
  CHECK(run({timed(0, 100, 1)}).at(0).status == RequestStatus::kCompleted);
  run.config.request_timeout = SimTime::from_us(1999);
  CHECK(run({timed(0, 100, 1)}).at(0).status == RequestStatus::kUnfinished);
}

TEST_CASE("a full queue refuses", "[faults]") {
  Run run;
  run.config.scheduler.max_num_seqs = 1;
  run.config.max_queue = 2;
  const auto fates =
      run({timed(0, 10, 50), timed(5, 10, 5), timed(6, 10, 5), timed(7, 10, 5), timed(500, 10, 5)});
  CHECK(fates.at(2).status == RequestStatus::kCompleted);
  CHECK(fates.at(3).status == RequestStatus::kRejected);
  CHECK(fates.at(3).reason == "the queue is full");
  CHECK(fates.at(4).status == RequestStatus::kCompleted);
}

TEST_CASE("whatever happens, every request ends once", "[faults]") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed, "test.faults");
    Run run;
    run.policy = testing::make_checked;
    run.config.replicas = static_cast<std::int64_t>(1 + rng.below(3));
    const auto decode = std::make_shared<DisaggregatedConfig>();
    const bool split = rng.below(3) > 0;
    const auto randomise = [&](SchedulerConfig& config) {
      config.num_gpu_blocks = static_cast<std::int64_t>(40 + rng.below(60));
      config.max_num_seqs = static_cast<std::int64_t>(1 + rng.below(20));
      config.max_num_batched_tokens = static_cast<std::int64_t>(64 + rng.below(500));
      config.async_scheduling = rng.below(2) == 0;
      config.enable_prefix_caching = rng.below(2) == 0;
    };
    randomise(run.config.scheduler);
    if (!split) vary_memory(run.config.scheduler, rng.below(9));
    std::size_t replicas = static_cast<std::size_t>(run.config.replicas);
    if (split) {
      decode->scheduler = run.config.scheduler;
      randomise(decode->scheduler);
      decode->replicas = static_cast<std::int64_t>(1 + rng.below(3));
      decode->push = rng.below(2) == 0;
      decode->layers = 4;
      decode->block_bytes = 1e6;
      replicas += static_cast<std::size_t>(decode->replicas);
      const LinkSpec link{"wire", 1e8 * static_cast<double>(1 + rng.below(100)), SimTime(500),
                          true};
      decode->topology = std::make_shared<Topology>(star(link, replicas));
      for (VertexId port = 0; port < replicas; ++port) decode->ports.push_back({port});
      run.config.disaggregated = decode;
    }
    std::int64_t at = 0;
    for (int i = 0; i < 12; ++i) {
      at += static_cast<std::int64_t>(rng.below(150));
      const std::size_t replica = rng.below(replicas);
      const std::uint64_t what = rng.below(split ? 4 : 2);
      if (what == 0) run.config.scenario.push_back(down(at, replica));
      if (what == 1) run.config.scenario.push_back(up(at, replica));
      if (what == 2) {
        run.config.scenario.push_back(bandwidth(at, static_cast<LinkId>(replica), 0));
      }
      if (what == 3) {
        run.config.scenario.push_back(bandwidth(at, static_cast<LinkId>(replica), 0.5));
      }
    }
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      run.config.scenario.push_back(up(at + 1, replica));
    }
    if (rng.below(2) == 0) run.config.request_timeout = SimTime::from_ms(100);
    const auto fates = run(steady(150, 5));
    REQUIRE(fates.size() == 150);
    for (const auto& [index, r] : fates) {
      if (run.config.request_timeout == SimTime::max()) {
        INFO("request " << index << ": " << r.reason);
        CHECK(r.status == RequestStatus::kCompleted);
      } else if (r.status == RequestStatus::kUnfinished) {
        CHECK(r.reason == "timed out");
      }
      if (r.status != RequestStatus::kCompleted) continue;
      CHECK(r.arrival <= r.scheduled);
      CHECK(r.scheduled < r.first_token);
    }
  }
}

TEST_CASE("a prefill replica keeps blocks for 480 s", "[faults]") {
  Run run;
  run.config.disaggregated = decode_pool(run.config.scheduler, 2);
  run.config.scenario = {down(0, 1), up(479'000, 1)};
  const SimTime up_at = SimTime::from_ms(479'000);
  CHECK(run({timed(0, 100, 3)}).at(0).first_token ==
        up_at + SimTime::from_ms(7) + SimTime::from_us(1010));
  CHECK(run.outcome.faults.failed_transfers == 0);
  run.config.scenario.back() = up(481'000, 1);  // too late: the prompt is computed again
  CHECK(run({timed(0, 100, 3)}).at(0).first_token ==
        SimTime::from_ms(481'000) + SimTime::from_us(2000));
  CHECK(run.outcome.faults.failed_transfers == 1);
}

TEST_CASE("a link that drops makes the decode side compute the prompt", "[faults]") {
  Run run;
  run.config.disaggregated = decode_pool(run.config.scheduler, 2);
  run.config.scenario = {bandwidth(4, 0, 0)};
  const auto r = run({timed(0, 100, 3)}).at(0);  // prefill to 2 ms, KV to 9 ms
  CHECK(r.first_token == SimTime::from_ms(4) + SimTime::from_us(2000));
  CHECK(run.outcome.faults.failed_transfers == 1);
  run.config.scenario = {bandwidth(4, 0, 0.5)};  // 2 blocks are there, the rest takes twice as long
  CHECK(run({timed(0, 100, 3)}).at(0).first_token ==
        SimTime::from_ms(2 + 2 + 10) + SimTime::from_us(1010));
}
