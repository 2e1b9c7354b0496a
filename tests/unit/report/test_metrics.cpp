/// Are the metrics those that `vllm bench serve` would compute? All numbers by hand.
#include "records.hpp"
#include "report/metrics_collector.hpp"
#include "support/catch.hpp"

namespace servesim {

using testing::completed;
using testing::ms;
using testing::not_completed;

TEST_CASE("metrics of three requests") {
  MetricsCollector collector;
  collector.on_request(completed(0, 1000, 1000, 1100, 2000, 10));  // TTFT 100, TPOT 100, E2E 1000
  collector.on_request(completed(1, 1500, 1600, 1800, 2800, 11));  // TTFT 300, TPOT 100, E2E 1300
  collector.on_request(completed(2, 2000, 2000, 2200, 2200, 1));   // TTFT 200, no TPOT, E2E 200
  collector.on_token_gaps(ms(100), 19);
  const Metrics m = collector.finish();
  CHECK(m.total == 3);
  CHECK(m.completed == 3);
  CHECK(m.duration_s == Approx(1.8));
  CHECK(m.total_input_tokens == 300);
  CHECK(m.total_output_tokens == 22);
  CHECK(m.ttft_ms.mean == Approx(200));
  CHECK(m.ttft_ms.median == Approx(200));
  CHECK(m.ttft_ms.p90 == Approx(280));
  CHECK(m.ttft_ms.std == Approx(81.64965809277261));
  CHECK(m.tpot_ms.count == 2);
  CHECK(m.tpot_ms.mean == Approx(100));
  CHECK(m.e2el_ms.mean == Approx(2500.0 / 3));
  CHECK(m.itl_ms.count == 19);
  CHECK(m.itl_ms.mean == Approx(100));
  CHECK_FALSE(m.has_goodput);
  CHECK_FALSE(m.saturated);
}

TEST_CASE("every request ends in one bucket, and only completed ones count tokens") {
  MetricsCollector collector;
  collector.on_request(completed(0, 0, 0, 10, 20, 2));
  collector.on_request(not_completed(1, 5, RequestStatus::kRejected, "too long"));
  collector.on_request(not_completed(2, 6, RequestStatus::kRejected, "zero output tokens"));
  collector.on_request(not_completed(3, 7, RequestStatus::kRejected, "too long"));
  collector.on_request(not_completed(4, 8, RequestStatus::kUnfinished, "interrupted"));
  const Metrics m = collector.finish();
  CHECK(m.total == 5);
  CHECK(m.completed + m.rejected + m.unfinished == m.total);
  CHECK(m.rejected == 3);
  CHECK(m.total_input_tokens == 100);
  REQUIRE(m.rejections.size() == 2);
  CHECK(m.rejections[0] == std::pair<std::string, std::int64_t>("too long", 2));
}

TEST_CASE("a request cut short counts the tokens that came") {
  MetricsCollector collector;
  RequestRecord record = completed(0, 0, 0, 100, 400, 4);
  record.output_tokens = 50;
  collector.on_request(record);
  const Metrics m = collector.finish();
  CHECK(m.total_output_tokens == 4);
  CHECK(m.tpot_ms.mean == Approx(100));
}

TEST_CASE("goodput counts requests that meet every target") {
  MetricsCollector collector({.ttft_ms = 250, .tpot_ms = 50, .e2el_ms = {}});
  collector.on_request(completed(0, 0, 0, 250, 750, 11));  // on the line: good
  collector.on_request(completed(1, 0, 0, 251, 300, 11));  // TTFT misses
  collector.on_request(completed(2, 0, 0, 100, 900, 11));  // TPOT misses
  collector.on_request(completed(3, 0, 0, 100, 100, 1));   // has no TPOT to miss
  const Metrics m = collector.finish();
  CHECK(m.has_goodput);
  CHECK(m.good == 2);
}

TEST_CASE("no request at all") {
  const Metrics m = MetricsCollector().finish();
  CHECK(m.total == 0);
  CHECK(m.duration_s == 0);
  CHECK(m.ttft_ms.count == 0);
}

namespace {

/// Requests every 100 ms whose wait is `wait(i)` milliseconds.
template <typename Wait>
Metrics with_waits(int n, Wait wait) {
  MetricsCollector collector;
  for (int i = 0; i < n; ++i) {
    const double arrival = 100.0 * i;
    const double scheduled = arrival + wait(i);
    collector.on_request(completed(static_cast<std::uint64_t>(i), arrival, scheduled,
                                   scheduled + 10, scheduled + 20, 2));
  }
  return collector.finish();
}

}  // namespace

TEST_CASE("saturation: a queue that grows to the end is reported") {
  CHECK(with_waits(1000, [](int i) { return 5.0 * i; }).saturated);  // 5 % over capacity
  CHECK(with_waits(100, [](int i) { return 200.0 * i; }).saturated);
}

TEST_CASE("saturation: steady queues, bursts that are over and warm-ups are not") {
  CHECK_FALSE(with_waits(1000, [](int) { return 30.0; }).saturated);
  CHECK_FALSE(with_waits(1000, [](int i) { return i % 50 * 20.0; }).saturated);
  CHECK_FALSE(with_waits(1000, [](int i) { return i > 300 && i < 500 ? 9000.0 : 20.0; }).saturated);
  CHECK_FALSE(with_waits(1000, [](int i) { return i < 250 ? i * 40.0 : 10'000.0; }).saturated);
  CHECK_FALSE(with_waits(20, [](int i) { return 500.0 * i; }).saturated);  // too few to judge
}

TEST_CASE("requests that all arrive at once are not called saturated") {
  MetricsCollector collector;
  for (int i = 0; i < 100; ++i) {
    collector.on_request(
        completed(static_cast<std::uint64_t>(i), 0, i * 10, i * 10 + 5, i * 10 + 9, 2));
  }
  const Metrics m = collector.finish();
  CHECK(m.all_at_once);
  CHECK_FALSE(m.saturated);
}

}  // namespace servesim
