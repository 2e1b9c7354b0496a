/// Are the curves of stretches those of single steps, up to the error that docs/report.md states?
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "cluster/simulation.hpp"
#include "cost/linear_cost_model.hpp"
#include "cost/roofline_cost_model.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "report/series_collector.hpp"
#include "sched/policies/policies.hpp"
#include "support/catch.hpp"
#include "unit/cluster/list_trace.hpp"

namespace servesim {
namespace {

/// A collector that is told of every step by itself: the exact curves.
class ExactCollector : public SeriesCollector {
 public:
  using SeriesCollector::SeriesCollector;
  StepWatch watch(SimTime first_arrival) override {
    StepWatch watch = SeriesCollector::watch(first_arrival);
    watch.singly_until = SimTime::max();
    return watch;
  }
};

std::vector<Request> random_load(std::mt19937& random) {
  std::vector<Request> requests;
  std::int64_t at = 500;
  const auto pause = 1 + random() % 400;
  for (int i = 0; i < 60; ++i) {
    at += static_cast<std::int64_t>(random() % pause);
    requests.push_back(testing::timed(at, 1 + static_cast<std::int64_t>(random() % 2000),
                                      1 + static_cast<std::int64_t>(random() % 400)));
  }
  return requests;
}

RunSeries series_of(const ClusterConfig& config, const ClusterParts& parts,
                    const std::vector<Request>& requests, SeriesCollector& collector) {
  testing::ListTrace trace(requests);
  RunControl control;
  simulate(config, parts, trace, collector, nullptr, nullptr, control);
  return collector.finish();
}

}  // namespace

TEST_CASE("curves of stretches are those of their steps") {
  std::mt19937 random(23);
  for (int round = 0; round < 40; ++round) {
    ClusterConfig config;
    config.replicas = 1 + random() % 2;
    config.scheduler.num_gpu_blocks = 400 + static_cast<std::int64_t>(random() % 2000);
    config.scheduler.max_model_len = 3000;
    config.scheduler.enable_prefix_caching = false;
    const bool is_static = random() % 3 == 0;
    config.scheduler.async_scheduling = !is_static && random() % 2 == 0;
    config.host.step = SimTime::from_us(static_cast<std::int64_t>(random() % 2) * 3000);
    ClusterParts parts{is_static ? make_static : make_chunked, nullptr, make_round_robin};
    const bool linear = random() % 2 == 0;
    parts.make_cost_model = [linear]() -> std::unique_ptr<StepCostModel> {
      if (linear) return std::make_unique<LinearCostModel>(5000, 10);
      return std::make_unique<RooflineCostModel>(load_model("llama-3.1-8b"),
                                                 load_hardware("h100-sxm"), DeploymentSpec{});
    };
    const std::vector<Request> requests = random_load(random);
    SeriesDetail detail;
    detail.bins = 64;
    SeriesCollector stretched(detail);
    ExactCollector exact(detail);
    const OverTime curves = series_of(config, parts, requests, stretched).engine;
    const OverTime truth = series_of(config, parts, requests, exact).engine;
    INFO("round " << round << (linear ? ", linear" : ", roofline"));
    REQUIRE(curves.start_s == truth.start_s);
    REQUIRE(curves.bin_s == truth.bin_s);
    for (std::size_t column = 0; column < truth.columns.size(); ++column) {
      const std::vector<double>& got = curves.columns[column].values;
      const std::vector<double>& want = truth.columns[column].values;
      REQUIRE(got.size() == want.size());
      INFO(truth.columns[column].name);
      const double most = *std::max_element(want.begin(), want.end());
      const double total = std::accumulate(want.begin(), want.end(), 0.0);
      if (truth.columns[column].name != "batch_max") {
        REQUIRE(std::accumulate(got.begin(), got.end(), 0.0) ==
                Approx(total).epsilon(1e-4).margin(1e-9));
      }
      // Block by block, internal fragmentation is a saw whose teeth a line runs through.
      const double error = truth.columns[column].name == "kv_internal" ? 0.3 : 0.02;
      for (std::size_t bin = 0; bin < want.size(); ++bin) {
        INFO("bin " << bin << " of " << want.size());
        REQUIRE(std::abs(got[bin] - want[bin]) <= error * most + 1e-9);
      }
    }
  }
}

}  // namespace servesim
