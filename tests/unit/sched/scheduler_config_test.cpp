/// Settings that contradict each other, and requests that can never be served.
#include "core/error.hpp"
#include "sched/batch_policy.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

SchedulerConfig usable() {
  SchedulerConfig config;
  config.num_gpu_blocks = 11;  // 10 usable: 160 tokens
  config.max_model_len = 1000;
  return config;
}

}  // namespace

TEST_CASE("contradictions are refused") {
  CHECK_NOTHROW(validate(usable()));
  const auto refuses = [](auto change) {
    SchedulerConfig config = usable();
    change(config);
    CHECK_THROWS_AS(validate(config), InputError);
  };
  refuses([](SchedulerConfig& c) { c.num_gpu_blocks = 1; });
  refuses([](SchedulerConfig& c) { c.block_size = 0; });
  refuses([](SchedulerConfig& c) { c.max_num_seqs = 0; });
  refuses([](SchedulerConfig& c) { c.max_num_batched_tokens = c.max_num_seqs - 1; });
  refuses([](SchedulerConfig& c) {
    c.enable_chunked_prefill = false;
    c.max_num_batched_tokens = c.max_model_len - 1;
  });
  refuses([](SchedulerConfig& c) { c.watermark = 1; });
  refuses([](SchedulerConfig& c) { c.watermark = -0.1; });
  refuses([](SchedulerConfig& c) { c.long_prefill_token_threshold = -1; });
  refuses([](SchedulerConfig& c) { c.speculative.method = SpeculativeMethod::kNgram; });
  refuses([](SchedulerConfig& c) { c.speculative.acceptance_rate = 1.5; });
  refuses([](SchedulerConfig& c) { c.layer_groups = group_layers(2, 2, 64); });
  SchedulerConfig windowed = usable();
  windowed.layer_groups = group_layers(2, 2, 64);
  windowed.enable_prefix_caching = false;
  CHECK_NOTHROW(validate(windowed));
  windowed.region_rule = region_max;
  CHECK_THROWS_AS(validate(windowed), InputError);
}

TEST_CASE("the pool of groups of layers has the bytes of the one of all layers") {
  SchedulerConfig config = usable();
  config.swap_blocks = 7;
  config.moves.bytes_per_token = 600;
  const SchedulerConfig plain = in_pool_units(config);
  CHECK(plain.num_gpu_blocks == 11);
  CHECK(plain.swap_blocks == 7);
  CHECK(plain.moves.bytes_per_token == 600);
  config.layer_groups = group_layers(2, 10, 64);  // six groups of two
  const SchedulerConfig grouped = in_pool_units(config);
  CHECK(grouped.num_gpu_blocks == 61);
  CHECK(grouped.swap_blocks == 42);
  CHECK(grouped.moves.bytes_per_token == Approx(100));
}

TEST_CASE("what can never be served is rejected, to the token") {
  const SchedulerConfig config = usable();
  CHECK(rejection_reason(config, 0, 1) == "zero input tokens");
  CHECK(rejection_reason(config, 1, 0) == "zero output tokens");
  CHECK(rejection_reason(config, 100, 61).empty());  // the last token needs no slot
  CHECK(rejection_reason(config, 100, 62) == "longer than the KV pool");
  CHECK(rejection_reason(config, 999, 2) == "longer than max_model_len");
  SchedulerConfig truncating = config;
  truncating.num_gpu_blocks = 1000;
  truncating.truncate_at_max_model_len = true;
  CHECK(rejection_reason(truncating, 999, 2).empty());
  CHECK(rejection_reason(truncating, 1000, 1) == "longer than max_model_len");
  SchedulerConfig windowed = config;
  windowed.layer_groups = group_layers(1, 1, 33);  // 20 blocks, of which 3 are enough for windows
  CHECK(rejection_reason(windowed, 200, 73).empty());  // 272 tokens: 17 blocks and 3
  CHECK(rejection_reason(windowed, 200, 74) == "longer than the KV pool");
  windowed.layer_groups = group_layers(0, 2, 33);
  CHECK(rejection_reason(windowed, 900, 100).empty());
  SchedulerConfig eagle = config;
  eagle.speculative = {SpeculativeMethod::kEagle, 4, 0.5, false};
  CHECK(rejection_reason(eagle, 100, 57).empty());
  CHECK(rejection_reason(eagle, 100, 58) == "longer than the KV pool");
}
