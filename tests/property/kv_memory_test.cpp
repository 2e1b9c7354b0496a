/// Allocators and preemption modes on random engines and traces: stretches change nothing, nobody
/// is lost, bytes add up, and each mode keeps its promise.
#include <algorithm>
#include <cstdlib>

#include "kv/region_rules.hpp"
#include "support/catch.hpp"
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
  const KvPeak& peak = stretched.stats.kv_peak;
  CHECK(peak.allocated + peak.external <= static_cast<std::int64_t>(slots));
  CHECK(peak.internal + peak.reserved <= peak.allocated);
  return stretched;
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
    const testing::Outcome all = swap(1'000'000, slow_moves(seed % 2 == 0));
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
      CHECK(all.stats.seconds[static_cast<std::size_t>(Component::kKvTransfer)] >= 0);
    }
    swapped += all.stats.swapped_tokens;
  }
  CHECK(swapped > 0);
}
