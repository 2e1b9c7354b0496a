/// The production engine against the slow, obvious one: every decision, and every time to the
/// nanosecond.
#include <algorithm>
#include <cstdlib>

#include "support/catch.hpp"
#include "support/oracle/compare.hpp"
#include "support/oracle/oracle.hpp"
#include "support/oracle/random_case.hpp"
#include "support/replay.hpp"

using namespace servesim;

namespace {

/// More seeds for a long run: SERVESIM_PROPERTY_CASES=20000.
std::uint64_t cases() {
  const char* chosen = std::getenv("SERVESIM_PROPERTY_CASES");
  return chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 1500;
}

std::vector<testing::AffinePrice> prices(const oracle::Config& config, std::uint64_t seed) {
  const std::int64_t base = 1000 * std::max<std::int64_t>(config.base_us, 1);
  const std::int64_t per_token = 1000 * config.per_token_us;
  if (seed % 3 == 0) return {{base, per_token, 0}};
  return {{base, per_token, 0}, {base, per_token + 7, 3, 5}};
}

}  // namespace

TEST_CASE("every decision equals the oracle's", "[property]") {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    const oracle::RandomCase random = oracle::random_case(seed);
    const testing::AffinePrice price = prices(random.config, seed).back();
    const auto expected = oracle::run(random.config, random.requests, price.for_oracle()).steps;
    const auto actual = testing::log_engine(random.config, random.requests, price);
    const auto difference = oracle::compare_logs(expected, actual);
    INFO("seed " << seed << "\n" << difference.value_or(""));
    REQUIRE(!difference.has_value());
  }
}

TEST_CASE("stretches change nothing: every time equals the oracle's to the nanosecond",
          "[property]") {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    oracle::RandomCase random =
        seed % 5 == 4 ? oracle::random_static_case(seed) : oracle::random_case(seed);
    random.config.host_ns = seed % 4 == 1 ? 300'000 : seed % 4 == 2 ? 2'500'000 : 0;
    for (const testing::AffinePrice& price : prices(random.config, seed)) {
      const testing::Outcome expected = testing::run_oracle(random.config, random.requests, price);
      const testing::Outcome actual = testing::run_engine(random.config, random.requests, price);
      INFO("seed " << seed << " per_context_ns " << price.per_context_ns);
      REQUIRE(testing::difference(expected, actual) == "");
    }
  }
}

TEST_CASE("every decision and time of a pipeline equals the oracle's", "[property]") {
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    oracle::RandomCase random = oracle::random_pipeline_case(seed);
    random.config.host_ns = seed % 4 == 1 ? 300'000 : seed % 4 == 2 ? 2'500'000 : 0;
    const testing::AffinePrice price = prices(random.config, seed).back();
    const auto expected = oracle::run(random.config, random.requests, price.for_oracle()).steps;
    testing::Outcome logged;
    const auto actual = testing::log_engine(random.config, random.requests, price, &logged);
    const auto difference = oracle::compare_logs(expected, actual);
    INFO("seed " << seed << "\n" << difference.value_or(""));
    REQUIRE(!difference.has_value());
    const testing::Outcome fates = testing::run_oracle(random.config, random.requests, price);
    REQUIRE(testing::difference(fates, logged) == "");
    const testing::Outcome unlogged = testing::run_engine(random.config, random.requests, price);
    REQUIRE(testing::difference(fates, unlogged) == "");
    preemptions += logged.stats.preemptions;
  }
  CHECK(preemptions > 100);
}

TEST_CASE("KV bytes integrate to the same over stretches and over single steps", "[property]") {
  for (std::uint64_t seed = 0; seed < cases() / 3; ++seed) {
    const oracle::RandomCase random = oracle::random_case(seed);
    for (const testing::AffinePrice& price : prices(random.config, seed)) {
      testing::Outcome single;
      testing::log_engine(random.config, random.requests, price, &single);
      const testing::Outcome stretched = testing::run_engine(random.config, random.requests, price);
      INFO("seed " << seed);
      CHECK(stretched.kv_used == Approx(single.kv_used).epsilon(1e-9));
      CHECK(stretched.kv_internal == Approx(single.kv_internal).epsilon(1e-9));
      CHECK(stretched.kv_reserved == Approx(single.kv_reserved).epsilon(1e-9));
      CHECK(testing::difference(single, stretched) == "");
    }
  }
}
