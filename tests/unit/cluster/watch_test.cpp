/// Does watching a run leave it as it is, and do the steps it tells of add up to it?
#include <map>
#include <random>

#include "cluster/simulation.hpp"
#include "cost/linear_cost_model.hpp"
#include "cost/roofline_cost_model.hpp"
#include "engine/step_report.hpp"
#include "hardware/hardware_loader.hpp"
#include "list_trace.hpp"
#include "model/model_loader.hpp"
#include "net/topology_loader.hpp"
#include "sched/policies/policies.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

/// Adds up what it is told, and checks that it is in order.
class StepWatcher : public Observer {
 public:
  StepWatch wish;
  std::map<std::int32_t, EngineStats> sums;
  std::map<std::uint64_t, RequestRecord> fates;
  std::int64_t preemptions = 0, resumptions = 0, stretches = 0;

  StepWatch watch(SimTime) override { return wish; }
  void on_request(const RequestRecord& record) override { fates[record.index] = record; }
  void on_preempted(std::uint64_t index, SimTime at) override {
    ++preemptions;
    CHECK(out_.emplace(index, at).second);
  }
  void on_resumed(std::uint64_t index, SimTime at) override {
    ++resumptions;
    REQUIRE(out_.contains(index));
    CHECK(out_[index] <= at);
    out_.erase(index);
  }
  void on_steps(const StepReport& report) override {
    Last& last = last_[report.replica];
    REQUIRE(report.scheduled >= last.scheduled);
    REQUIRE(report.last_scheduled >= report.scheduled);
    EngineStats& sum = sums[report.replica];
    add_kv(sum.kv, last, report);
    last.scheduled = report.last_scheduled;
    last.kv = report.kv_last;
    if (report.steps == 0) return;
    if (report.stages.empty()) REQUIRE(report.begin >= last.end);
    check_stages(report, last);
    REQUIRE(report.begin >= report.scheduled);
    REQUIRE(report.end - report.begin >= report.busy);
    last.end = report.end;
    const bool in_window =
        report.scheduled >= wish.singly_from && report.scheduled < wish.singly_until;
    if (in_window) REQUIRE(report.steps == 1);
    const bool before = report.scheduled < wish.singly_from;
    if (before) REQUIRE(report.last_scheduled < wish.singly_from);
    stretches += report.steps > 1 ? 1 : 0;
    sum.steps += report.steps;
    sum.scheduled_seqs += report.steps * report.seqs();
    sum.scheduled_tokens += report.steps * report.decode_tokens + report.prefill_tokens();
    sum.busy += report.busy;
    sum.flops += report.flops;
    sum.hbm_bytes += report.hbm_bytes;
    for (std::size_t i = 0; i < kComponentCount; ++i) sum.seconds[i] += report.seconds[i];
  }

 private:
  struct Last {
    SimTime scheduled, end;
    KvUsage kv;
    std::vector<StageRun> stages;
  };

  /// A stage does one batch after the other, and a batch one stage after the other.
  static void check_stages(const StepReport& report, Last& last) {
    if (report.stages.empty()) return;
    SimTime at = report.begin;
    for (std::size_t i = 0; i < report.stages.size(); ++i) {
      REQUIRE(report.stages[i].begin >= at);
      if (!last.stages.empty()) REQUIRE(report.stages[i].begin >= last.stages[i].end);
      at = report.stages[i].end;
    }
    REQUIRE(report.stages[0].begin == report.begin);
    REQUIRE(at == report.end);
    last.stages.assign(report.stages.begin(), report.stages.end());
  }

  /// The level stays as it was told until the next report.
  static void add_kv(KvIntegral& kv, const Last& last, const StepReport& report) {
    const double held = (report.scheduled - last.scheduled).seconds();
    const KvLevels& stretch = report.kv_integral;
    const auto filled =
        static_cast<double>(last.kv.allocated - last.kv.internal - last.kv.reserved);
    kv.used += held * filled + 1e-9 * (stretch.allocated - stretch.internal - stretch.reserved);
    kv.internal += held * static_cast<double>(last.kv.internal) + 1e-9 * stretch.internal;
    kv.reserved += held * static_cast<double>(last.kv.reserved) + 1e-9 * stretch.reserved;
  }

  std::map<std::int32_t, Last> last_;
  std::map<std::uint64_t, SimTime> out_;
};

std::vector<Request> random_requests(std::mt19937& random) {
  std::vector<Request> requests;
  std::int64_t at = static_cast<std::int64_t>(random() % 1000);
  for (int i = 0; i < 40; ++i) {
    at += static_cast<std::int64_t>(random() % 300);
    requests.push_back(testing::timed(at, 1 + static_cast<std::int64_t>(random() % 400),
                                      1 + static_cast<std::int64_t>(random() % 200)));
  }
  return requests;
}

struct WatchCase {
  ClusterConfig config;
  ClusterParts parts;
};

/// A decode pool of its own, over slow wires.
std::shared_ptr<DisaggregatedConfig> decode_pool(const ClusterConfig& config, bool push) {
  auto decode = std::make_shared<DisaggregatedConfig>();
  decode->scheduler = config.scheduler;
  decode->push = push;
  decode->layers = 4;
  decode->block_bytes = 1e6;
  const auto replicas = static_cast<std::size_t>(config.replicas) + 1;
  const LinkSpec wire{"wire", 1e9, SimTime(500), true};
  decode->topology = std::make_shared<Topology>(star(wire, replicas));
  for (VertexId port = 0; port < replicas; ++port) decode->ports.push_back({port});
  return decode;
}

WatchCase random_case(std::mt19937& random) {
  WatchCase c;
  c.config.replicas = 1 + random() % 2;
  c.config.scheduler.num_gpu_blocks = 60 + static_cast<std::int64_t>(random() % 100);
  c.config.scheduler.max_model_len = 600;
  c.config.scheduler.max_num_batched_tokens = 256;
  c.config.scheduler.max_num_seqs = 16;
  c.config.scheduler.enable_prefix_caching = random() % 2 == 0;
  c.config.host.step = SimTime::from_us(static_cast<std::int64_t>(random() % 3) * 1500);
  const bool is_static = random() % 3 == 0;
  c.config.scheduler.async_scheduling = !is_static && random() % 2 == 0;
  c.parts.make_policy = is_static ? make_static : make_chunked;
  if (!c.config.scheduler.enable_prefix_caching && random() % 2 == 0) {
    c.config.scheduler.layer_groups = {1, 2, 1 + static_cast<std::int64_t>(random() % 100), 3, 1};
  } else if (!is_static && random() % 2 == 0) {
    c.config.disaggregated = decode_pool(c.config, random() % 2 == 0);
    c.parts.make_decode_policy = c.parts.make_policy;
  }
  c.parts.make_router = make_round_robin;
  DeploymentSpec deployment;
  if (!is_static && c.config.disaggregated == nullptr && random() % 4 == 0) {
    deployment.pipeline_parallel = 2 + static_cast<std::int64_t>(random() % 3);
    c.config.scheduler.pipeline_parallel = deployment.pipeline_parallel;
    c.config.scheduler.async_scheduling = false;
  }
  if (random() % 2 == 0) {
    c.parts.make_cost_model = [stages = deployment.pipeline_parallel] {
      return std::make_unique<LinearCostModel>(5000, 10, stages);
    };
  } else {
    c.parts.make_cost_model = [deployment] {
      return std::make_unique<RooflineCostModel>(load_model("llama-3.1-8b"),
                                                 load_hardware("h100-sxm"), deployment);
    };
  }
  c.parts.make_decode_cost_model = c.parts.make_cost_model;
  return c;
}

std::vector<EngineStats> run_watched(const WatchCase& c, const std::vector<Request>& requests,
                                     StepWatcher& watcher) {
  testing::ListTrace trace(requests);
  RunControl control;
  return simulate(c.config, c.parts, trace, watcher, nullptr, nullptr, control);
}

}  // namespace

TEST_CASE("watched runs are those not watched, and their steps add up to them") {
  std::mt19937 random(11);
  std::int64_t preemptions = 0, stretches = 0;
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    const WatchCase c = random_case(random);
    const std::vector<Request> requests = random_requests(random);
    StepWatcher unwatched, watched;
    watched.wish.steps = true;
    if (round % 3 > 0) {
      watched.wish.singly_from = SimTime::from_ms(static_cast<std::int64_t>(random() % 3000));
      watched.wish.singly_until =
          watched.wish.singly_from + SimTime::from_ms(static_cast<std::int64_t>(random() % 4000));
    }
    const std::vector<EngineStats> plain = run_watched(c, requests, unwatched);
    const std::vector<EngineStats> seen = run_watched(c, requests, watched);
    REQUIRE(unwatched.sums.empty());
    REQUIRE(unwatched.preemptions == 0);
    REQUIRE(watched.fates.size() == requests.size());
    for (const auto& [index, fate] : unwatched.fates) {
      REQUIRE(watched.fates.at(index).first_token == fate.first_token);
      REQUIRE(watched.fates.at(index).last_token == fate.last_token);
    }
    std::int64_t told = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const EngineStats& sum = watched.sums[static_cast<std::int32_t>(i)];
      REQUIRE(seen[i].busy == plain[i].busy);
      REQUIRE(seen[i].kv.used == Approx(plain[i].kv.used));
      REQUIRE(sum.kv.used == Approx(plain[i].kv.used).epsilon(1e-9));
      REQUIRE(sum.kv.internal == Approx(plain[i].kv.internal).epsilon(1e-9).margin(1e-9));
      REQUIRE(sum.kv.reserved == Approx(plain[i].kv.reserved).epsilon(1e-9).margin(1e-9));
      REQUIRE(sum.steps == plain[i].steps);
      REQUIRE(sum.scheduled_seqs == plain[i].scheduled_seqs);
      REQUIRE(sum.scheduled_tokens == plain[i].scheduled_tokens);
      REQUIRE(sum.busy == plain[i].busy);
      REQUIRE(sum.flops == Approx(plain[i].flops).epsilon(1e-9));
      REQUIRE(sum.hbm_bytes == Approx(plain[i].hbm_bytes).epsilon(1e-9));
      for (std::size_t k = 0; k < kComponentCount; ++k) {
        REQUIRE(sum.seconds[k] == Approx(plain[i].seconds[k]).epsilon(1e-7).margin(1e-9));
      }
      told += plain[i].preemptions;
    }
    REQUIRE(watched.preemptions == told);
    preemptions += told;
    stretches += watched.stretches;
  }
  CHECK(preemptions > 10);  // the cases do have both
  CHECK(stretches > 100);
}

}  // namespace servesim
