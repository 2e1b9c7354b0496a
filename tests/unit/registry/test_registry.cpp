/// Do tables find, refuse and list names, and does everything that ships do what its table says?
#include <stdexcept>

#include "registry/registries.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

Registries builtins() {
  Registries registries;
  register_builtins(registries);
  return registries;
}

class NoSink : public SequenceSink {
 public:
  void on_finished(Ticket, const SequenceOutcome&) override {}
  void on_token_gaps(SimTime, std::int64_t) override {}
};

}  // namespace

TEST_CASE("a table finds what was added, in order") {
  Table<int> table("thing");
  table.add("b", "the second letter", 2);
  table.add("a", "the first letter", 1);
  CHECK(table.at("a") == 1);
  CHECK(table.names() == std::vector<std::string>{"b", "a"});
  CHECK(table.entries()[0].sentence == "the second letter");
}

TEST_CASE("an unknown name is an error of the user that names the nearest") {
  Table<int> table("thing");
  table.add("continuous", "", 1);
  try {
    table.at("continous");
    FAIL("found");
  } catch (const InputError& error) {
    const std::string message = error.what();
    CHECK(message.find("unknown thing 'continous'") != std::string::npos);
    CHECK(message.find("did you mean 'continuous'") != std::string::npos);
  }
}

TEST_CASE("a name added twice is an error of ours") {
  Table<int> table("thing");
  table.add("a", "", 1);
  CHECK_THROWS_AS(table.add("a", "", 2), std::logic_error);
}

TEST_CASE("every entry has a sentence") {
  const Registries all = builtins();
  for (const auto& entry : all.policies.entries()) CHECK_FALSE(entry.sentence.empty());
  for (const auto& entry : all.allocators.entries()) CHECK_FALSE(entry.sentence.empty());
  for (const auto& entry : all.routers.entries()) CHECK_FALSE(entry.sentence.empty());
  for (const auto& entry : all.cost_models.entries()) CHECK_FALSE(entry.sentence.empty());
  for (const auto& entry : all.evictions.entries()) CHECK_FALSE(entry.sentence.empty());
}

TEST_CASE("every policy serves a request to its end within the token budget") {
  SchedulerConfig config;
  config.num_gpu_blocks = 100;
  config.max_num_batched_tokens = 64;
  config.max_num_seqs = 4;
  config.max_model_len = 64;
  const Registries all = builtins();
  for (const auto& entry : all.policies.entries()) {
    INFO(entry.name);
    config.enable_chunked_prefill = entry.factory.chunked_prefill;
    config.async_scheduling = false;
    NoSink sink;
    const std::unique_ptr<BatchPolicy> policy = entry.factory.make(config, sink, nullptr, 0);
    NewSequence sequence;
    sequence.prompt = 20;
    sequence.max_tokens = 10;
    policy->add(sequence);
    CHECK(policy->has_unfinished());
    int steps = 0;
    for (SimTime now; policy->has_unfinished() && steps < 100;
         now += SimTime::from_ms(1), ++steps) {
      const StepPlan& plan = policy->plan(now);
      CHECK(plan.tokens <= config.max_num_batched_tokens);
      policy->commit(now + SimTime::from_ms(1));
      policy->check_integrity();
    }
    CHECK(steps == 10);
  }
}

TEST_CASE("every router names a replica, and one replica gets everything") {
  const Registries all = builtins();
  for (const auto& entry : all.routers.entries()) {
    INFO(entry.name);
    const std::unique_ptr<Router> router = entry.factory(0);
    const Request request;
    const std::vector<ReplicaLoad> loads(3);
    for (int i = 0; i < 10; ++i) {
      CHECK(router->route(request, loads) < 3);
      CHECK(router->route(request, {loads.data(), 1}) == 0);
    }
  }
}

}  // namespace servesim
