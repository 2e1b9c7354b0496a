// The small rules that engine and scheduler share.
#include <algorithm>

#include "support/oracle/oracle.hpp"

namespace servesim::oracle {

namespace {

constexpr std::int64_t kNsPerUs = 1000;

}  // namespace

Price linear_price(std::int64_t base_us, std::int64_t per_token_us) {
  return [base_us, per_token_us](const std::vector<ScheduledWork>& work,
                                 std::int64_t) -> std::int64_t {
    if (work.empty()) {
      return 0;
    }
    std::int64_t tokens = 0;
    for (const ScheduledWork& entry : work) {
      tokens += entry.tokens;
    }
    return (base_us + per_token_us * tokens) * kNsPerUs;
  };
}

Price linear_price(const Config& config) {
  return linear_price(config.base_us, config.per_token_us);
}

std::int64_t final_length(const Config& config, const Request& request) {
  return std::min(request.prompt_len + request.output_len, config.max_model_len);
}

std::int64_t lookahead_tokens(const Config& config) {
  return config.spec_method == SpecMethod::kEagle ? config.num_speculative_tokens : 0;
}

std::int64_t blocks_of(const Config& config, std::int64_t tokens) {
  const std::int64_t all = (tokens + config.block_size - 1) / config.block_size;
  if (config.windowed_groups == 0) {
    return all;
  }
  std::int64_t most = 0;
  for (std::int64_t length = 1; length <= tokens; ++length) {
    const std::int64_t oldest = std::max<std::int64_t>(length - config.window, 0);
    most = std::max(most, (length - 1) / config.block_size - oldest / config.block_size + 1);
  }
  return config.full_groups * all + config.windowed_groups * most;
}

std::optional<std::string> never_fits(const Config& config, const Request& request) {
  if (request.prompt_len <= 0) {
    return "the prompt is empty";
  }
  if (request.output_len <= 0) {
    return "no output is asked for";
  }
  if (request.prompt_len >= config.max_model_len) {
    return "the prompt leaves no room within max_model_len";
  }
  // The last token is sampled but never computed, so it needs no slot.
  const std::int64_t slots =
      std::min(final_length(config, request) - 1 + lookahead_tokens(config), config.max_model_len);
  if (blocks_of(config, slots) > config.num_gpu_blocks - 1) {
    return "the sequence needs more KV blocks than there are";
  }
  return std::nullopt;
}

}  // namespace servesim::oracle
