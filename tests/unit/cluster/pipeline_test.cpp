/// Closed forms of pipelines, on steps of 1 ms + 10 us a token that their stages share evenly.
#include "run.hpp"

using namespace servesim;
using testing::Run;
using testing::timed;

namespace {

struct Pipeline : Run {
  explicit Pipeline(std::int64_t stages) {
    policy = testing::make_checked;
    config.scheduler.pipeline_parallel = stages;
  }
};

double bubble_fraction(const EngineStats& stats) {
  return stats.bubbles.seconds() / (stats.bubbles + stats.busy).seconds();
}

}  // namespace

TEST_CASE("one request keeps one stage busy at a time", "[pipeline]") {
  Pipeline run(4);
  const auto r = run({timed(0, 100, 51)}).at(0);
  CHECK(r.first_token == SimTime::from_us(2000));
  CHECK(r.last_token == r.first_token + SimTime::from_us(1010) * 50);  // a step each, as without
  CHECK(bubble_fraction(run.stats[0]) == Approx(0.75));
  CHECK(run.stats[0].steps == 51);
}

TEST_CASE("a batch for every stage leaves no bubbles", "[pipeline]") {
  Pipeline run(4);
  run.config.scheduler.max_num_batched_tokens = 200;
  run.config.scheduler.max_num_seqs = 200;
  const std::vector<Request> requests(4, timed(0, 200, 2001));
  const auto fates = run(requests);
  for (const auto& [index, r] : fates) {
    // The others' prompts, three times as long as a decode, are all that holds it up.
    const double steps = (r.last_token - r.first_token).seconds() / 1010e-6;
    CHECK(steps == Approx(2000).epsilon(0.002));
  }
  CHECK(bubble_fraction(run.stats[0]) < 0.005);
  CHECK(run.stats[0].steps == 4 * 2001);
}

TEST_CASE("what comes while the engine waits for its only batch joins that batch", "[pipeline]") {
  Pipeline run(4);  // vLLM's loop blocks on the oldest batch when it had nothing to schedule
  const auto fates = run({timed(0, 100, 50), timed(1, 100, 50)});
  CHECK(fates.at(0).first_token == SimTime::from_us(2000));
  CHECK(fates.at(1).scheduled == SimTime::from_us(2000));
  CHECK(run.stats[0].steps == 51);
}

TEST_CASE("stages multiply throughput where batches fill them", "[pipeline]") {
  const auto duration = [](std::int64_t stages, std::int64_t seqs, std::int64_t prompts) {
    Pipeline run(stages);
    run.config.scheduler.max_num_seqs = seqs;
    run.config.scheduler.max_num_batched_tokens = prompts * 16;
    std::vector<Request> requests;
    for (int i = 0; i < 256; ++i) requests.push_back(timed(0, 16, 100));
    SimTime end;
    for (const auto& [index, r] : run(requests)) end = std::max(end, r.last_token);
    return end.seconds();
  };
  // The same 8 sequences, two in each of four stages: their steps are shorter by 60 us.
  CHECK(duration(1, 8, 8) / duration(4, 8, 2) == Approx(1.08 / 1.02).epsilon(0.02));
  // Eight in each: four times the work in the same time.
  CHECK(duration(1, 8, 8) / duration(4, 32, 8) == Approx(4).epsilon(0.05));
}
