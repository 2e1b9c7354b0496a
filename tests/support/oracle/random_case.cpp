#include "support/oracle/random_case.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <random>
#include <string>

namespace servesim::oracle {

namespace {

/// Draws integers by its own arithmetic: the standard distributions differ between libraries.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>(engine_() % width);
  }

  bool percent(std::int64_t chance) { return between(1, 100) <= chance; }

  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return *(values.begin() + between(0, static_cast<std::int64_t>(values.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

constexpr std::array<std::uint64_t, 3> kGroups = {1000, 2000, 3000};

std::int64_t blocks_for(std::int64_t tokens, std::int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

Config random_config(Dice& dice) {
  Config config;
  config.block_size = dice.one_of<std::int64_t>({1, 2, 4, 8, 16, 32});
  config.max_num_seqs = dice.one_of<std::int64_t>({1, 2, 4, 8, 16});
  config.max_model_len = dice.one_of<std::int64_t>({64, 100, 128, 200, 256});
  config.max_num_batched_tokens = dice.one_of<std::int64_t>({16, 33, 64, 100, 256, 2048});
  config.enable_chunked_prefill = dice.percent(75);
  if (!config.enable_chunked_prefill) {
    config.max_num_batched_tokens = std::max(config.max_num_batched_tokens, config.max_model_len);
  }
  config.max_num_seqs = std::min(config.max_num_seqs, config.max_num_batched_tokens);
  config.enable_prefix_caching = dice.percent(75);
  config.policy = dice.one_of({QueuePolicy::kFcfs, QueuePolicy::kPriority});
  config.long_prefill_token_threshold = dice.one_of<std::int64_t>({0, 0, 0, 7, 32});
  config.watermark = dice.one_of({0.0, 0.0, 0.02, 0.1});
  config.scheduler_reserve_full_isl = dice.percent(60);
  config.async_scheduling = dice.percent(50);
  config.spec_method =
      dice.one_of({SpecMethod::kNone, SpecMethod::kNone, SpecMethod::kNgram, SpecMethod::kEagle});
  if (config.spec_method != SpecMethod::kNone) {
    config.num_speculative_tokens = dice.between(1, 5);
  }
  // From a pool in which the longest sequences never fit to one with room for a few of them.
  const std::int64_t longest = blocks_for(config.max_model_len, config.block_size);
  config.num_gpu_blocks = 2 + dice.between(longest * 3 / 4, longest * 3);
  config.base_us = dice.one_of<std::int64_t>({500, 1000});
  config.per_token_us = dice.one_of<std::int64_t>({0, 10, 50});
  config.host_ns = dice.one_of<std::int64_t>({0, 0, 0, 150'000});
  return config;
}

void add_shared_prefix(Dice& dice, const Config& config, std::size_t index, Request& request) {
  request.hash_block = dice.one_of<std::int64_t>({1, 4, 8, 16, config.block_size});
  const std::int64_t ids = blocks_for(request.prompt_len, request.hash_block);
  const std::int64_t shared = dice.percent(30) ? ids : dice.between(0, ids);
  const auto group = static_cast<std::size_t>(dice.between(0, 2));
  const std::uint64_t own = 100'000 * (static_cast<std::uint64_t>(index) + 1);
  for (std::int64_t i = 0; i < ids; ++i) {
    const std::uint64_t base = i < shared ? kGroups.at(group) : own;
    request.hash_ids.push_back(base + static_cast<std::uint64_t>(i));
  }
}

std::vector<Request> random_requests(Dice& dice, const Config& config) {
  std::vector<Request> requests(static_cast<std::size_t>(dice.between(1, 40)));
  const std::int64_t limit = config.max_model_len;
  // Equals that are admitted by their first chunk alone can preempt each other without end.
  const bool can_rotate_for_ever = config.policy == QueuePolicy::kPriority &&
                                   !config.scheduler_reserve_full_isl &&
                                   config.long_prefill_token_threshold > 0;
  std::int64_t now_us = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request& request = requests[i];
    request.id = std::to_string(i).insert(0, 1, 'q');
    now_us += dice.one_of<std::int64_t>({0, 0, 500, 1000, 1500, 3000, 20'000});
    now_us += can_rotate_for_ever ? 1 : 0;
    request.arrival_ns = now_us * 1000;
    request.priority = static_cast<int>(dice.between(0, 2));
    request.prompt_len = dice.percent(20) ? dice.between(1, 8) : dice.between(1, limit - 1);
    request.output_len = dice.percent(15) ? 1 : dice.between(1, 80);
    if (dice.percent(70)) {
      // Most sequences end by their own length; the others are cut at the model's.
      const std::int64_t room = limit - request.prompt_len;
      request.output_len = std::min(request.output_len, room);
    }
    if (dice.percent(3)) {
      request.prompt_len = limit + dice.between(0, 10);  // never fits
    }
    request.hash_block = config.block_size;
    if (dice.percent(60)) {
      add_shared_prefix(dice, config, i, request);
    }
  }
  return requests;
}

}  // namespace

RandomCase random_case(std::uint64_t seed) {
  Dice dice(seed);
  RandomCase result;
  result.config = random_config(dice);
  result.requests = random_requests(dice, result.config);
  return result;
}

RandomCase random_pipeline_case(std::uint64_t seed) {
  RandomCase result = random_case(seed);
  result.config.pipeline_parallel = 2 + static_cast<std::int64_t>(seed % 4);
  result.config.async_scheduling = false;
  result.config.spec_method = SpecMethod::kNone;
  result.config.num_speculative_tokens = 0;
  return result;
}

RandomCase random_static_case(std::uint64_t seed) {
  RandomCase result = random_case(seed);
  result.config.batching = Batching::kStatic;
  result.config.async_scheduling = false;
  result.config.spec_method = SpecMethod::kNone;
  result.config.num_speculative_tokens = 0;
  result.config.enable_prefix_caching = false;
  return result;
}

}  // namespace servesim::oracle
