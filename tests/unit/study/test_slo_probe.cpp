/// Are misses counted by cause, and is a run given up exactly when the target is out of reach?
#include <cmath>

#include "core/rng.hpp"
#include "study/slo_probe.hpp"
#include "support/catch.hpp"
#include "unit/report/records.hpp"

namespace servesim {
namespace {

GoodputTargets targets_100_10() {
  GoodputTargets targets;
  targets.ttft_ms = 100;
  targets.tpot_ms = 10;
  return targets;
}

RequestRecord too_long(std::uint64_t index, std::int64_t input, std::string_view reason) {
  RequestRecord record = testing::not_completed(index, 0, RequestStatus::kRejected, reason);
  record.input_tokens = input;
  return record;
}

}  // namespace

TEST_CASE("allowed misses follow from the attainment") {
  const TraceCount trace{200, 0};
  CHECK(SloTarget{0.99}.allowed_misses(trace) == 2);
  CHECK(SloTarget{0.991}.allowed_misses(trace) == 1);
  CHECK(SloTarget{1.0}.allowed_misses(trace) == 0);
  CHECK(SloTarget{0.5}.allowed_misses({7, 0}) == 3);
  CHECK(SloTarget{0.9}.allowed_misses({110, 10}) == 10);
  CHECK(SloTarget{0.9, true}.allowed_misses({110, 10}) == 11);
  for (std::int64_t n = 1; n < 400; ++n) {
    for (const std::int64_t percent : {50, 90, 95, 99, 100}) {
      const std::int64_t allowed =
          SloTarget{static_cast<double>(percent) / 100}.allowed_misses({n, 0});
      CHECK((n - allowed) * 100 >= percent * n);
      CHECK((n - allowed - 1) * 100 < percent * n);
    }
  }
}

TEST_CASE("misses are counted by cause") {
  RunControl control;
  SloProbe probe(targets_100_10(), {0.5}, 100, 4096, control);
  probe.on_request(testing::completed(0, 0, 1, 50, 140, 10));   // good
  probe.on_request(testing::completed(1, 0, 1, 150, 240, 10));  // TTFT
  probe.on_request(testing::completed(2, 0, 1, 50, 500, 10));   // TPOT
  probe.on_request(testing::completed(3, 0, 1, 150, 900, 10));  // both
  probe.on_request(testing::completed(4, 0, 1, 100, 100, 1));   // one token: no TPOT
  probe.on_request(too_long(5, 5000, "longer than max_model_len"));
  probe.on_request(too_long(6, 4000, "longer than the KV pool"));
  const SloMisses& m = probe.misses();
  CHECK(m.good == 2);
  CHECK(m.missed == 4);
  CHECK(m.ttft == 2);
  CHECK(m.tpot == 2);
  CHECK(m.rejected == 1);
  CHECK(m.unservable == 1);
  CHECK(m.counted({0.5, false}) == 4);
  CHECK(m.counted({0.5, true}) == 5);
  CHECK_FALSE(probe.abandoned());
  probe.on_request(testing::not_completed(7, 0, RequestStatus::kUnfinished, "timed out"));
  CHECK(probe.misses().missed == 5);
  CHECK(probe.misses().rejected == 2);
  control.stop = true;  // what a stopped run leaves unfinished says nothing
  probe.on_request(testing::not_completed(8, 0, RequestStatus::kUnfinished, "stopped"));
  CHECK(probe.misses().missed == 5);
}

TEST_CASE("what no configuration can serve is what the scheduler rejects at the model's context") {
  CHECK(is_unservable(0, 5, 4096));
  CHECK(is_unservable(5, 0, 4096));
  CHECK_FALSE(is_unservable(4000, 96, 4096));
  CHECK(is_unservable(4000, 97, 4096));
  CHECK(is_unservable(4096, 1, 4096));
}

TEST_CASE("a run is given up if and only if it cannot meet the target any more") {
  Rng rng(3, "test.slo");
  for (int round = 0; round < 500; ++round) {
    const std::int64_t n = 1 + static_cast<std::int64_t>(rng.below(60));
    const SloTarget target{0.5 + 0.5 * rng.uniform()};
    const std::int64_t allowed = target.allowed_misses({n, 0});
    const double miss_rate = rng.uniform();
    RunControl control;
    SloProbe probe(targets_100_10(), target, allowed, 4096, control);
    std::int64_t good = 0;
    bool stopped = false;
    for (std::int64_t i = 0; i < n; ++i) {
      const bool misses = rng.uniform() < miss_rate;
      good += misses ? 0 : 1;
      if (stopped) continue;
      probe.on_request(testing::completed(static_cast<std::uint64_t>(i), 0, 1, misses ? 200 : 50,
                                          misses ? 240 : 90, 10));
      stopped = control.stop;
    }
    const bool meets = static_cast<double>(good) >= target.attainment * static_cast<double>(n);
    CHECK(stopped == probe.abandoned());
    CHECK(meets == !probe.abandoned());
  }
}

}  // namespace servesim
