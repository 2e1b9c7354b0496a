/// Allocators and preemption modes on random engines and traces: stretches change nothing, nobody
/// is lost, bytes add up, and each mode keeps its promise.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "kv/region_rules.hpp"
#include "support/catch.hpp"
#include "support/oracle/compare.hpp"
#include "support/oracle/oracle.hpp"
#include "support/oracle/random_case.hpp"
#include "support/replay.hpp"

using namespace servesim;

namespace {

std::uint64_t kv_cases() {
  const char* chosen = std::getenv("SERVESIM_PROPERTY_CASES");
  return chosen != nullptr ? std::strtoull(chosen, nullptr, 10) / 3 : 500;
}

/// Moving a token to the host or back takes 2 us, within HBM 1 us.
KvMoveCosts slow_moves(bool overlaps) {
  KvMoveCosts moves;
  moves.bytes_per_token = 2000;
  moves.host_bytes_per_s = 1e9;
  moves.hbm_bytes_per_s = 4e9;
  moves.overlaps_compute = overlaps;
  return moves;
}

struct KvCase {
  oracle::RandomCase random;
  testing::AffinePrice price;
};

KvCase kv_case(std::uint64_t seed) {
  KvCase c{seed % 5 == 4 ? oracle::random_static_case(seed) : oracle::random_case(seed), {}};
  c.random.config.host_ns = seed % 4 == 1 ? 300'000 : 0;
  c.price = {1000 * c.random.config.base_us, 1000 * c.random.config.per_token_us, 3, 5};
  return c;
}

/// The run in stretches, after checking that it equals the one in single steps.
testing::Outcome checked_run(const KvCase& c, const testing::Adjust& adjust) {
  const testing::Outcome stretched =
      testing::run_engine(c.random.config, c.random.requests, c.price, adjust);
  if (c.random.config.batching == oracle::Batching::kVllm) {
    testing::Outcome single;
    testing::log_engine(c.random.config, c.random.requests, c.price, &single, adjust);
    CHECK(testing::difference(single, stretched) == "");
    CHECK(stretched.kv_used == Approx(single.kv_used).epsilon(1e-9));
    CHECK(stretched.kv_internal == Approx(single.kv_internal).margin(1e-9));
    CHECK(stretched.kv_reserved == Approx(single.kv_reserved).margin(1e-9));
    CHECK(stretched.kv_external == Approx(single.kv_external).margin(1e-9));
  }
  const double slots =
      static_cast<double>((c.random.config.num_gpu_blocks - 1) * c.random.config.block_size);
  const double taken =
      stretched.kv_used + stretched.kv_internal + stretched.kv_reserved + stretched.kv_external;
  CHECK(taken <= slots * stretched.elapsed_s * (1 + 1e-9));
  const KvUsage& peak = stretched.stats.kv_peak;
  CHECK(peak.allocated + peak.external <= static_cast<std::int64_t>(slots));
  CHECK(peak.internal + peak.reserved <= peak.allocated);
  return stretched;
}

/// One to three groups of layers with a window and up to two without share a pool of the same
/// bytes, or of a part of them.
KvCase windowed_case(std::uint64_t seed) {
  KvCase c = kv_case(seed);
  oracle::Config& config = c.random.config;
  config.enable_prefix_caching = false;
  config.full_groups = static_cast<std::int64_t>(seed % 3);
  config.windowed_groups = 1 + static_cast<std::int64_t>(seed / 3 % 3);
  config.window = 1 + static_cast<std::int64_t>(seed * 7 % 90);
  const std::int64_t groups = config.full_groups + config.windowed_groups;
  config.num_gpu_blocks = 1 + (config.num_gpu_blocks - 1) * groups;
  if (seed % 2 == 0) config.num_gpu_blocks = 2 + config.num_gpu_blocks / 3;
  return c;
}

struct SlotSeconds {
  double filled = 0;     ///< hold a token
  double allocated = 0;  ///< of blocks that are held
};

/// Slots over the life of an engine that waits for each step, from its log and the bare rule.
SlotSeconds slot_seconds(const oracle::Config& config,
                         const std::vector<oracle::LoggedStep>& steps) {
  SlotSeconds sum;
  std::map<std::string, std::int64_t> computed;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const oracle::LoggedStep& step = steps[i];
    for (const std::string& id : step.preempted) computed[id] = 0;
    for (const auto& [id, tokens] : step.scheduled) computed[id] += tokens;
    std::int64_t filled = 0, blocks = 0;
    for (const std::string& id : step.running) {
      // A group that takes no more blocks writes over its oldest tokens.
      const std::int64_t held = oracle::blocks_of(config, computed[id]);
      const std::int64_t all = (computed[id] + config.block_size - 1) / config.block_size;
      const std::int64_t ring =
          (held - config.full_groups * all) / config.windowed_groups * config.block_size;
      blocks += held;
      filled +=
          config.full_groups * computed[id] + config.windowed_groups * std::min(computed[id], ring);
    }
    // A step that schedules nobody, because the first in line was its own victim, lasts until the
    // next.
    const bool waits = step.scheduled.empty() && i + 1 < steps.size();
    const std::int64_t end_ns = waits ? steps[i + 1].t_ns : step.done_ns;
    const double seconds = static_cast<double>(end_ns - step.t_ns) * 1e-9;
    sum.filled += seconds * static_cast<double>(filled);
    sum.allocated += seconds * static_cast<double>(blocks * config.block_size);
  }
  return sum;
}

std::int64_t served(const testing::Outcome& outcome) {
  return std::count_if(outcome.fates.begin(), outcome.fates.end(),
                       [](const testing::Fate& fate) { return fate.completed; });
}

}  // namespace

TEST_CASE("contiguous regions under every rule and policy", "[property]") {
  std::int64_t copied = 0;
  for (std::uint64_t seed = 0; seed < kv_cases(); ++seed) {
    KvCase c = kv_case(seed);
    c.random.config.enable_prefix_caching = false;
    c.random.config.spec_method = oracle::SpecMethod::kNone;
    c.random.config.num_speculative_tokens = 0;
    const testing::Outcome paged = checked_run(c, {});
    for (const RegionRule rule : {region_max, region_pow2, region_oracle}) {
      INFO("seed " << seed << " rule "
                   << (rule == region_max    ? "max"
                       : rule == region_pow2 ? "pow2"
                                             : "oracle"));
      const testing::Outcome outcome = checked_run(c, [&](SchedulerConfig& config) {
        config.region_rule = rule;
        config.moves = slow_moves(seed % 2 == 0);
      });
      CHECK(served(outcome) == served(paged));  // the same requests are too long
      CHECK(outcome.kv_internal == 0);
      copied += outcome.stats.copied_tokens;
      if (rule != region_pow2) CHECK(outcome.stats.copied_tokens == 0);
      if (rule != region_pow2) CHECK(outcome.stats.preemptions == 0);
    }
  }
  CHECK(copied > 0);
}

TEST_CASE("with stall nobody is ever preempted, whatever the allocator", "[property]") {
  for (std::uint64_t seed = 0; seed < kv_cases(); ++seed) {
    KvCase c = kv_case(seed);
    INFO("seed " << seed);
    const testing::Outcome recompute = checked_run(c, {});
    const testing::Outcome stall = checked_run(
        c, [](SchedulerConfig& config) { config.preemption_mode = PreemptionMode::kStall; });
    // A request that fills the whole pool has no room for its drafts.
    if (c.random.config.spec_method == oracle::SpecMethod::kNone) {
      CHECK(stall.stats.preemptions == 0);
      CHECK(stall.recomputed_tokens == 0);
    }
    CHECK(served(stall) == served(recompute));
    if (c.random.config.enable_prefix_caching ||
        c.random.config.spec_method != oracle::SpecMethod::kNone) {
      continue;
    }
    const testing::Outcome regions = checked_run(c, [](SchedulerConfig& config) {
      config.preemption_mode = PreemptionMode::kStall;
      config.region_rule = region_pow2;
    });
    CHECK(regions.stats.preemptions == 0);
    CHECK(regions.stats.copied_tokens == 0);
  }
}

TEST_CASE("a swap space that holds everything saves all that need not be computed again",
          "[property]") {
  std::int64_t swapped = 0;
  for (std::uint64_t seed = 0; seed < kv_cases(); ++seed) {
    const KvCase c = kv_case(seed);
    if (c.random.config.batching == oracle::Batching::kStatic) continue;
    INFO("seed " << seed);
    const auto swap = [&](std::int64_t blocks, KvMoveCosts moves) {
      return checked_run(c, [=](SchedulerConfig& config) {
        config.preemption_mode = PreemptionMode::kSwap;
        config.swap_blocks = blocks;
        config.moves = moves;
      });
    };
    const testing::Outcome recompute = checked_run(c, {});
    CHECK(testing::difference(recompute, swap(0, slow_moves(true))) == "");
    const bool overlaps = seed % 2 == 0;
    const testing::Outcome all = swap(1'000'000, slow_moves(overlaps));
    CHECK(served(all) == served(recompute));
    // At most the tokens that were in flight are computed again.
    const std::int64_t in_flight =
        c.random.config.async_scheduling ? 2 * (1 + c.random.config.num_speculative_tokens) : 0;
    if (c.random.config.max_num_batched_tokens >= c.random.config.max_model_len &&
        c.random.config.long_prefill_token_threshold == 0) {
      CHECK(all.recomputed_tokens <= in_flight * all.stats.preemptions);
    }
    if (!c.random.config.enable_prefix_caching && all.stats.preemptions > 0) {
      CHECK(all.stats.swapped_tokens > 0);
      const double exposed = all.stats.seconds[static_cast<std::size_t>(Component::kKvTransfer)];
      if (!overlaps) CHECK(exposed > 0);
    }
    swapped += all.stats.swapped_tokens;
  }
  CHECK(swapped > 0);
}

namespace {

/// Two requests that fit together at first and not to their ends: the second is preempted once.
struct Contention {
  std::int64_t first = 0, second = 0;  ///< prompts
  std::int64_t outputs = 0;

  testing::Outcome run(PreemptionMode mode, double host_bytes_per_s,
                       std::int64_t per_token_ns) const {
    oracle::Config config;
    config.block_size = 16;
    config.max_model_len = 4096;
    config.max_num_batched_tokens = 4096;
    config.enable_prefix_caching = false;
    config.num_gpu_blocks = 1 + (first + second + outputs) / 16;
    std::vector<oracle::Request> requests(2);
    for (oracle::Request& r : requests) r.output_len = outputs;
    requests[0].id = "a";
    requests[0].prompt_len = first;
    requests[1].id = "b";
    requests[1].prompt_len = second;
    return testing::run_engine(config, requests, {1'000'000, per_token_ns, 0, 0},
                               [&](SchedulerConfig& s) {
                                 s.preemption_mode = mode;
                                 s.swap_blocks = 10'000;
                                 s.moves = slow_moves(false);
                                 s.moves.host_bytes_per_s = host_bytes_per_s;
                               });
  }
};

std::int64_t last_token_ns(const testing::Outcome& outcome) {
  std::int64_t last = 0;
  for (const testing::Fate& fate : outcome.fates) last = std::max(last, fate.last_token_ns);
  return last;
}

}  // namespace

TEST_CASE("swap and recompute differ by prefill time against KV bytes over the link, to the ns",
          "[property]") {
  constexpr std::int64_t kPerTokenNs = 2000;  // of computing a prompt token
  int swap_won = 0;
  int recompute_won = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto salt = static_cast<std::int64_t>(seed);
    const Contention c{200 + 13 * salt, 300 + 7 * salt, 400};
    const double rate = 0.5e9 * static_cast<double>(1 + seed % 8);
    const testing::Outcome recompute = c.run(PreemptionMode::kRecompute, rate, kPerTokenNs);
    const testing::Outcome swap = c.run(PreemptionMode::kSwap, rate, kPerTokenNs);
    INFO("seed " << seed);
    REQUIRE(recompute.stats.preemptions == 1);
    REQUIRE(swap.stats.preemptions == 1);
    REQUIRE(recompute.recomputed_tokens > 0);
    REQUIRE(swap.recomputed_tokens == 0);
    const double moved_ns = 1e9 * 2000.0 * static_cast<double>(swap.stats.swapped_tokens) / rate;
    const auto computed_ns = static_cast<double>(kPerTokenNs * recompute.recomputed_tokens);
    const auto gained = static_cast<double>(last_token_ns(recompute) - last_token_ns(swap));
    CHECK(gained == Approx(computed_ns - moved_ns).margin(2));  // two transfers, rounded
    (gained > 0 ? swap_won : recompute_won) += 1;
  }
  CHECK(swap_won > 5);
  CHECK(recompute_won > 5);
}

TEST_CASE("a prefix is loaded exactly where that is faster than computing it", "[property]") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    oracle::Config config;
    config.block_size = 16;
    config.num_gpu_blocks = 39;  // the stranger needs all 38
    config.max_model_len = 1024;
    config.max_num_batched_tokens = 2048;
    // The same prompt twice, a larger stranger between them that evicts it.
    const std::int64_t prompt = 64 + 16 * static_cast<std::int64_t>(seed % 20);
    std::vector<oracle::Request> requests(3);
    for (std::size_t i = 0; i < 3; ++i) {
      oracle::Request& r = requests[i];
      r.id = std::to_string(i);
      r.arrival_ns = static_cast<std::int64_t>(i) * 10'000'000'000;
      r.output_len = 2;
      r.prompt_len = i == 1 ? 600 : prompt;
      r.hash_block = 16;
      for (std::int64_t b = 0; b < (r.prompt_len + 15) / 16; ++b) {
        r.hash_ids.push_back(static_cast<std::uint64_t>((i == 1 ? 1000 : 0) + b));
      }
    }
    const double load_us = 20 + static_cast<double>(seed % 40);  // per block; computing takes 32 us
    const testing::AffinePrice price{1'000'000, 2000, 0, 0};
    const testing::Outcome outcome =
        testing::run_engine(config, requests, price, [&](SchedulerConfig& s) {
          s.offload.tiers = {{"cpu", 1000, load_us * 1e-6, 1e-9}};
          s.prefill_seconds = [](std::int64_t tokens, std::int64_t) {
            return 2e-6 * static_cast<double>(tokens);
          };
        });
    const OffloadCounters& counters = outcome.stats.offload;
    INFO("seed " << seed << " prompt " << prompt << " load_us " << load_us);
    CHECK(counters.stored_blocks > 0);
    const std::int64_t blocks = (prompt - 1) / 16;
    CHECK(counters.loaded_blocks == (load_us < 32 ? blocks : 0));
    CHECK(counters.recomputed_blocks == (load_us < 32 ? 0 : blocks));
    const std::int64_t ttft = outcome.fates[2].first_token_ns - requests[2].arrival_ns;
    const double work_us = load_us < 32 ? load_us * static_cast<double>(blocks) +
                                              2 * static_cast<double>(prompt - 16 * blocks)
                                        : 2 * static_cast<double>(prompt);
    CHECK(static_cast<double>(ttft) == Approx(1'000'000 + 1000 * work_us).margin(2));
  }
}

TEST_CASE("layers with a window: every decision and every time equals the oracle's", "[property]") {
  std::int64_t preemptions = 0, changed = 0;
  for (std::uint64_t seed = 0; seed < 3 * kv_cases(); ++seed) {
    KvCase c = windowed_case(seed);
    oracle::Config& config = c.random.config;
    INFO("seed " << seed);
    if (seed % 3 == 0) c.price.per_context_ns = 0;  // steps of equal length are taken at once
    const testing::Outcome expected = testing::run_oracle(config, c.random.requests, c.price);
    const testing::Outcome actual = testing::run_engine(config, c.random.requests, c.price);
    REQUIRE(testing::difference(expected, actual) == "");
    for (const testing::Fate& fate : actual.fates) preemptions += fate.preemptions;
    if (config.batching == oracle::Batching::kVllm) {
      const auto difference =
          oracle::compare_logs(oracle::run(config, c.random.requests, c.price.for_oracle()).steps,
                               testing::log_engine(config, c.random.requests, c.price));
      INFO(difference.value_or(""));
      REQUIRE(!difference.has_value());
    }
    config.full_groups += config.windowed_groups;  // the same pool, and nothing is ever freed
    config.windowed_groups = 1;
    config.full_groups -= 1;
    config.window = config.max_model_len;
    const testing::Outcome full = testing::run_engine(config, c.random.requests, c.price);
    changed += testing::difference(full, actual) == "" ? 0 : 1;
  }
  CHECK(preemptions > 0);
  CHECK(changed > 0);
}

TEST_CASE("the slots of layers with a window add up", "[property]") {
  for (std::uint64_t seed = 0; seed < kv_cases(); ++seed) {
    KvCase c = windowed_case(seed);
    oracle::Config& config = c.random.config;
    INFO("seed " << seed);
    checked_run(c, {});
    if (config.batching == oracle::Batching::kStatic) continue;
    config.async_scheduling = false;
    config.host_ns = 0;
    config.spec_method = oracle::SpecMethod::kNone;
    config.num_speculative_tokens = 0;
    const testing::Outcome outcome = checked_run(c, {});
    const SlotSeconds expected =
        slot_seconds(config, testing::log_engine(config, c.random.requests, c.price));
    CHECK(outcome.kv_used == Approx(expected.filled).epsilon(1e-9));
    CHECK(outcome.kv_used + outcome.kv_internal == Approx(expected.allocated).epsilon(1e-9));
  }
}

TEST_CASE("windows in the same memory: more is served, less is preempted", "[property]") {
  std::int64_t full_preemptions = 0, windowed_preemptions = 0;
  for (std::uint64_t seed = 1; seed < kv_cases(); seed += 2) {
    KvCase c = windowed_case(seed);
    oracle::Config& config = c.random.config;
    INFO("seed " << seed);
    const testing::Outcome windowed = checked_run(c, {});
    const testing::Outcome stall =
        checked_run(c, [](SchedulerConfig& s) { s.preemption_mode = PreemptionMode::kStall; });
    CHECK(served(stall) == served(windowed));
    if (config.spec_method == oracle::SpecMethod::kNone) CHECK(stall.stats.preemptions == 0);
    const testing::Outcome swap = checked_run(c, [](SchedulerConfig& s) {
      s.preemption_mode = PreemptionMode::kSwap;
      s.swap_blocks = 1'000'000;
      s.moves = slow_moves(true);
    });
    CHECK(served(swap) == served(windowed));
    const std::int64_t groups = config.full_groups + config.windowed_groups;
    config.num_gpu_blocks = 1 + (config.num_gpu_blocks - 1) / groups;
    config.full_groups = 1;
    config.windowed_groups = 0;
    const testing::Outcome full = checked_run(c, {});
    CHECK(served(windowed) >= served(full));
    full_preemptions += full.stats.preemptions;
    windowed_preemptions += windowed.stats.preemptions;
  }
  CHECK(windowed_preemptions < full_preemptions);
}
