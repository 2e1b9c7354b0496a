/// Prefill and decode on different replicas, against closed forms.
#include "cluster/disaggregation.hpp"

#include "core/rng.hpp"
#include "list_trace.hpp"
#include "net/topology_loader.hpp"
#include "run.hpp"
#include "support/catch.hpp"

using namespace servesim;
using testing::Run;
using testing::timed;

namespace {

constexpr double kBlockBytes = 1e6;

/// One prefill and one decode replica, a port each.
struct Split {
  Run run;
  std::shared_ptr<DisaggregatedConfig> decode = std::make_shared<DisaggregatedConfig>();
  LinkSpec link{"wire", 1e18, SimTime(0), true};
  std::int64_t prefill_replicas = 1;
  std::int64_t decode_replicas = 1;

  Split() {
    decode->scheduler = run.config.scheduler;
    decode->block_bytes = kBlockBytes;
  }
  std::map<std::uint64_t, RequestRecord> operator()(std::vector<Request> requests) {
    const auto all = static_cast<std::size_t>(prefill_replicas + decode_replicas);
    run.config.replicas = prefill_replicas;
    decode->replicas = decode_replicas;
    decode->topology = std::make_shared<Topology>(star(link, all));
    decode->ports.clear();
    for (VertexId port = 0; port < all; ++port) decode->ports.push_back({port});
    run.config.disaggregated = decode;
    return run(std::move(requests));
  }
  const KvTransferStats& transfers() const { return run.outcome.transfers; }
};

constexpr SimTime us(std::int64_t n) {
  return SimTime::from_us(n);
}
/// The price of a step of `tokens`.
constexpr SimTime step(std::int64_t tokens) {
  return us(1000 + 10 * tokens);
}

std::vector<Request> random_requests(std::uint64_t seed, int count, bool shared) {
  Rng rng(seed, "test.disaggregation");
  std::vector<Request> requests;
  std::int64_t at = 0;
  for (int i = 0; i < count; ++i) {
    at += static_cast<std::int64_t>(rng.below(20));
    const auto input = static_cast<std::int64_t>(1 + rng.below(800));
    requests.push_back(timed(at, input, static_cast<std::int64_t>(1 + rng.below(40))));
    if (!shared) continue;
    Request& request = requests.back();
    request.hash_block = 64;
    const std::uint64_t family = rng.below(5);
    for (std::int64_t b = 0; b < (input + 63) / 64; ++b) {
      request.hash_ids.push_back(b < 4 ? 1000 * family + static_cast<std::uint64_t>(b)
                                       : 100'000 + 100 * static_cast<std::uint64_t>(i) +
                                             static_cast<std::uint64_t>(b));
    }
  }
  return requests;
}

}  // namespace

TEST_CASE("P = D = 1, no load, an infinitely fast link: the sum of its parts", "[split]") {
  for (const bool push : {false, true}) {
    for (const bool async : {false, true}) {
      Split split;
      split.decode->push = push;
      split.run.config.scheduler.async_scheduling = async;
      split.decode->scheduler.async_scheduling = async;
      const auto r = split({timed(5, 100, 4)}).at(0);
      INFO("push " << push << ", async " << async);
      CHECK(r.status == RequestStatus::kCompleted);
      CHECK(r.scheduled == us(5000));
      CHECK(r.first_token == us(5000) + step(100) + step(1));
      CHECK(r.last_token == us(5000) + step(100) + step(1) * 4);
      CHECK(r.replica == 1);
      CHECK(split.transfers().kv_bytes == 7 * kBlockBytes);
      CHECK(split.run.stats[0].steps == 1);
      CHECK(split.run.stats[1].steps == 4);
    }
  }
}

TEST_CASE("pull: the transfer lies between prefill and decode, front ends on both sides",
          "[split]") {
  Split split;
  split.link = {"wire", 1e9, SimTime::from_us(50), true};
  split.run.config.host = {SimTime(0), us(300), us(200)};
  split.decode->host = {SimTime(0), us(70), us(30)};
  const auto r = split({timed(0, 100, 3)}).at(0);
  const SimTime handed_over = us(300) + step(100) + us(200 + 70);
  CHECK(r.first_token == handed_over + us(7000 + 50) + step(1) + us(30));
  REQUIRE(split.transfers().wait_ms.size() == 1);
  CHECK(split.transfers().wait_ms[0] == Approx(7.05));
  CHECK(split.transfers().links.size() == 2);
  CHECK(split.transfers().links[0].stats.busy == us(7000));
}

TEST_CASE("push: layers go while the next are computed", "[split]") {
  Split split;
  split.decode->push = true;
  split.decode->layers = 10;
  split.link = {"wire", 1e12, SimTime(0), true};  // 7 MB in 7 us: only the last layer is exposed
  auto r = split({timed(0, 100, 2)}).at(0);
  CHECK((r.first_token - step(1) - step(100)).ns() == 700);
  split.link = {"wire", 1e9, SimTime(0), true};  // 7 ms: begins at the end of the first layer
  r = split({timed(0, 100, 2)}).at(0);
  CHECK(r.first_token == us(200) + us(7000) + step(1));
  CHECK(split.transfers().kv_bytes == Approx(7 * kBlockBytes));
}

TEST_CASE("bytes moved are those of the prompt's blocks that the target lacks", "[split]") {
  for (const bool push : {false, true}) {
    Split split;
    split.decode->push = push;
    split.decode->layers = 7;
    split.decode->scheduler.enable_prefix_caching = true;
    split.link = {"wire", 20e9, SimTime::from_us(10), true};
    const std::vector<Request> requests = random_requests(1, 200, true);
    split(requests);
    std::int64_t blocks = 0;
    for (const Request& request : requests) blocks += (request.input_tokens + 15) / 16;
    const std::int64_t cached = split.transfers().cached_tokens;
    CHECK(cached > 0);
    CHECK(cached % 16 == 0);
    CHECK(split.transfers().kv_bytes ==
          Approx(static_cast<double>(blocks - cached / 16) * kBlockBytes).epsilon(1e-12));
    CHECK(split.transfers().transfers == 200);
    double crossed = 0;
    for (const LinkUse& link : split.transfers().links) crossed += link.stats.bytes;
    CHECK(crossed == Approx(2 * split.transfers().kv_bytes).epsilon(1e-12));
  }
}

TEST_CASE("a decode replica waits for KV without a running slot", "[split]") {
  Split split;
  split.link = {"wire", 1e9, SimTime(0), true};  // 1 ms a block
  split.decode->scheduler.max_num_seqs = 1;
  split.decode->scheduler.max_num_batched_tokens = 2048;
  // The first runs for 100 steps; the KV of the second comes meanwhile, though there is no slot.
  const auto fates = split({timed(0, 16, 100), timed(0, 160, 5)});
  CHECK(fates.at(0).last_token < fates.at(1).first_token);
  CHECK(fates.at(1).first_token == fates.at(0).last_token + step(1));
}

TEST_CASE("the prefill side keeps its blocks until they are read", "[split]") {
  Split split;
  split.link = {"wire", 1e8, SimTime(0), true};        // 10 ms a block
  split.run.config.scheduler.num_gpu_blocks = 1 + 10;  // one prompt of 160 tokens
  const auto fates = split({timed(0, 160, 2), timed(0, 160, 2)});
  CHECK(fates.at(0).first_token == step(160) + us(100'000) + step(1));
  CHECK(fates.at(1).scheduled == step(160) + us(100'000));
}

TEST_CASE("two transfers into one decode replica share its link", "[split]") {
  Split split;
  split.prefill_replicas = 2;
  split.link = {"wire", 1e9, SimTime(0), true};
  const auto fates = split({timed(0, 160, 2), timed(0, 160, 2)});
  for (const std::uint64_t i : {std::uint64_t{0}, std::uint64_t{1}}) {
    CHECK(fates.at(i).first_token == step(160) + us(20'000) + step(2));
  }
}

TEST_CASE("every request completes, whatever is short", "[split]") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Split split;
    Rng rng(seed, "test.split");
    split.run.policy = testing::make_checked;
    split.prefill_replicas = static_cast<std::int64_t>(1 + rng.below(3));
    split.decode_replicas = static_cast<std::int64_t>(1 + rng.below(3));
    split.decode->push = rng.below(2) == 0;
    split.decode->layers = 4;
    split.link = {"wire", 1e7 * static_cast<double>(1 + rng.below(10'000)), us(5), true};
    for (SchedulerConfig* config : {&split.run.config.scheduler, &split.decode->scheduler}) {
      config->num_gpu_blocks = static_cast<std::int64_t>(60 + rng.below(60));
      config->max_num_seqs = static_cast<std::int64_t>(1 + rng.below(20));
      config->max_num_batched_tokens = static_cast<std::int64_t>(64 + rng.below(1000));
      config->async_scheduling = rng.below(2) == 0;
      config->enable_prefix_caching = rng.below(2) == 0;
    }
    const auto fates = split(random_requests(seed, 150, rng.below(2) == 0));
    INFO("seed " << seed);
    REQUIRE(fates.size() == 150);
    for (const auto& [index, r] : fates) {
      CHECK(r.status == RequestStatus::kCompleted);
      CHECK(r.arrival <= r.scheduled);
      CHECK(r.scheduled < r.first_token);
      CHECK(r.first_token <= r.last_token);
    }
    for (const EngineStats& stats : split.run.stats) CHECK(stats.kv.used >= 0);
  }
}

TEST_CASE("requests that either side cannot hold are rejected", "[split]") {
  Split split;
  split.run.config.scheduler.num_gpu_blocks = 1 + 20;
  split.decode->scheduler.num_gpu_blocks = 1 + 30;
  const auto fates = split({timed(0, 321, 1), timed(0, 300, 200), timed(0, 300, 20)});
  CHECK(fates.at(0).status == RequestStatus::kRejected);
  CHECK(fates.at(1).status == RequestStatus::kRejected);
  CHECK(fates.at(2).status == RequestStatus::kCompleted);
}
