/// What a plan of vLLM's scheduler decides along with its own step.
#include <vector>

#include "sched/vllm_scheduler.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

struct Ends : SequenceSink {
  void on_finished(Ticket ticket, const SequenceOutcome&) override { tickets.push_back(ticket); }
  void on_token_gaps(SimTime, std::int64_t) override {}
  std::vector<Ticket> tickets;
};

SchedulerConfig small(bool async_scheduling) {
  SchedulerConfig config;
  config.num_gpu_blocks = 101;
  config.block_size = 16;
  config.max_num_batched_tokens = 64;
  config.max_num_seqs = 8;
  config.max_model_len = 512;
  config.enable_prefix_caching = false;
  config.async_scheduling = async_scheduling;
  return config;
}

NewSequence request(Ticket ticket, std::int64_t prompt, std::int64_t outputs) {
  NewSequence sequence;
  sequence.ticket = ticket;
  sequence.prompt = prompt;
  sequence.max_tokens = outputs;
  return sequence;
}

}  // namespace

TEST_CASE("a plan that admits a whole prompt decides its decodes too, up to the last") {
  for (const bool async : {false, true}) {
    Ends sink;
    VllmScheduler scheduler(small(async), sink, nullptr, 0);
    scheduler.add(request(1, 40, 10));
    const StepPlan& plan = scheduler.plan(SimTime(0));
    CHECK(plan.tokens == 40);
    CHECK(plan.stretch.steps == 9);
    CHECK(plan.stretch.seqs == 1);
    CHECK(plan.stretch.context == 40);
    CHECK(plan.results == StepResults::kFirstTokens);
    CHECK(plan.results_before == StepResults::kTokens);
  }
}

TEST_CASE("nothing is decided ahead while a prompt is half computed or somebody waits") {
  Ends sink;
  VllmScheduler scheduler(small(true), sink, nullptr, 0);
  scheduler.add(request(1, 70, 10));
  CHECK(scheduler.plan(SimTime(0)).stretch.steps == 0);  // 64 of 70
  scheduler.add(request(2, 60, 10));                     // of which 58 fit beside the other 6
  CHECK(scheduler.plan(SimTime(1)).stretch.steps == 0);
  scheduler.commit(SimTime(2));
  scheduler.add(request(3, 64, 10));
  CHECK(scheduler.plan(SimTime(2)).stretch.steps == 0);  // a chunk of 3 is left
}

TEST_CASE("the step after a last one is decided with those that follow, and its end frees KV") {
  Ends sink;
  VllmScheduler scheduler(small(true), sink, nullptr, 0);
  scheduler.add(request(1, 20, 2));
  scheduler.add(request(2, 20, 30));
  CHECK(scheduler.plan(SimTime(0)).stretch.steps == 1);
  scheduler.commit(SimTime(1));  // first tokens
  scheduler.extend(1, 1, 0, SimTime(1));
  const StepPlan& plan = scheduler.plan(SimTime(1));
  CHECK(plan.stretch.seqs == 1);
  CHECK(plan.stretch.steps == 27);
  CHECK(plan.results_before == StepResults::kEnds);
  CHECK(scheduler.arrival_matters());
  const std::int64_t before = plan.kv.allocated;
  scheduler.commit(SimTime(2));
  CHECK(sink.tickets == std::vector<Ticket>{1});
  CHECK(plan.kv.allocated == before - 2 * 16);
  CHECK(plan.results_before == StepResults::kTokens);
  scheduler.check_integrity();
}

}  // namespace servesim
