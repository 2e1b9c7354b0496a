/// Do the curves of the report say what happened?
#include <cmath>
#include <numeric>
#include <random>

#include "engine/step_report.hpp"
#include "report/percentile.hpp"
#include "report/series_collector.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

RequestRecord completed_at(std::uint64_t index, double arrival_s, double ttft_ms, double tpot_ms,
                           std::int64_t outputs) {
  RequestRecord record;
  record.index = index;
  record.arrival = SimTime::from_seconds(arrival_s);
  record.scheduled = record.arrival + SimTime::from_seconds(ttft_ms / 2000);
  record.first_token = record.arrival + SimTime::from_seconds(ttft_ms / 1000);
  record.last_token =
      record.first_token + SimTime::from_seconds(tpot_ms / 1000 * static_cast<double>(outputs - 1));
  record.output_tokens = record.generated_tokens = outputs;
  return record;
}

StepReport decode_stretch(std::int64_t begin_ms, std::int64_t steps, std::int64_t seqs) {
  StepReport report;
  report.steps = steps;
  report.scheduled = SimTime::from_ms(begin_ms);
  report.last_scheduled = SimTime::from_ms(begin_ms + 10 * (steps - 1));
  report.begin = report.scheduled;
  report.end = SimTime::from_ms(begin_ms + 10 * steps);
  report.busy = report.end - report.begin;
  report.decode_seqs = report.decode_tokens = seqs;
  report.seconds[0] = report.busy.seconds();
  report.flops = 1e12 * static_cast<double>(steps);
  report.hbm_bytes = 1e10 * static_cast<double>(steps);
  return report;
}

const std::vector<double>& column_of(const OverTime& series, const std::string& name) {
  for (const Column& column : series.columns) {
    if (column.name == name) return column.values;
  }
  FAIL("no column " << name);
  return series.columns.front().values;
}

double integral_of(const OverTime& series, const std::string& name) {
  const std::vector<double>& values = column_of(series, name);
  return series.bin_s * std::accumulate(values.begin(), values.end(), 0.0);
}

const Cdf& cdf_named(const RunSeries& series, const std::string& name) {
  for (const Cdf& cdf : series.cdfs) {
    if (cdf.name == name) return cdf;
  }
  FAIL("no distribution " << name);
  return series.cdfs.front();
}

}  // namespace

TEST_CASE("thinning keeps every n-th, from the first on, and never more than it may") {
  for (const std::size_t most : {1U, 2U, 3U, 7U, 8U}) {
    Thinned<int> thinned(most);
    for (int i = 0; i < 1000; ++i) {
      if (thinned.wants()) thinned.add(i);
      REQUIRE(thinned.kept().size() <= most);
      for (std::size_t k = 0; k < thinned.kept().size(); ++k) {
        REQUIRE(thinned.kept()[k] == static_cast<int>(k) * thinned.every());
      }
    }
    CHECK(static_cast<std::int64_t>(thinned.kept().size()) >= static_cast<std::int64_t>(most) / 2);
  }
}

TEST_CASE("sums over time are those of the steps") {
  SeriesCollector collector({});
  CHECK(collector.watch(SimTime(0)).steps);
  StepReport prefill = decode_stretch(0, 1, 2);
  const std::vector<PrefillChunk> chunks{{500, 0}, {300, 100}};
  prefill.chunks = chunks;
  prefill.kv = prefill.kv_last = {1600, 100, 0};
  collector.on_steps(prefill);
  StepReport decode = decode_stretch(10, 300, 4);
  decode.kv = {1600, 96, 0};
  decode.kv_last = {2800, 100, 0};
  decode.kv_integral = {2.5e12, 1e12, 0.5e12};  // over 2.99 s
  collector.on_steps(decode);
  StepReport idle;
  idle.scheduled = idle.last_scheduled = decode.end;
  collector.on_steps(idle);
  const OverTime engine = collector.finish().engine;
  CHECK(integral_of(engine, "prefill_tokens_per_s") == Approx(800));
  CHECK(integral_of(engine, "decode_tokens_per_s") == Approx(2 + 4 * 300));
  CHECK(integral_of(engine, "decode_seqs") == Approx(2 * 0.01 + 4 * 3));
  CHECK(integral_of(engine, "prefill_seqs") == Approx(2 * 0.01));
  CHECK(integral_of(engine, "busy") == Approx(3.01));
  CHECK(integral_of(engine, "flops_per_s") == Approx(301e12));
  CHECK(integral_of(engine, "time_gemm") == Approx(3.01));
  // 1500 held for 10 ms, then what the stretch had, then 2700 for the last 10 ms.
  CHECK(integral_of(engine, "kv_used") == Approx(1500 * 0.01 + 1000 + 2700 * 0.01));
  CHECK(integral_of(engine, "kv_reserved") == Approx(500));
  const std::vector<double>& most = column_of(engine, "batch_max");
  CHECK(*std::max_element(most.begin(), most.end()) == 4);
}

TEST_CASE("a request waits until its first step, and while it is preempted") {
  SeriesCollector collector({});
  collector.watch(SimTime(0));
  collector.on_preempted(3, SimTime::from_ms(2000));
  collector.on_resumed(3, SimTime::from_ms(2500));
  collector.on_preempted(4, SimTime::from_ms(2000));  // ends without coming back
  RequestRecord record = completed_at(3, 1, 200, 10, 5);
  record.preemptions = 1;
  collector.on_request(record);
  record = completed_at(4, 1.5, 400, 100, 3);
  record.preemptions = 1;
  collector.on_request(record);
  CHECK(integral_of(collector.finish().engine, "waiting") ==
        Approx(0.1 + 0.5 + 0.2 + (1.5 + 0.4 + 0.2 - 2.0)));
}

TEST_CASE("distributions pass through the exact quantiles, however many samples there are") {
  for (const int count : {1, 2, 40, 5000}) {
    SeriesCollector collector({});
    collector.watch(SimTime(0));
    std::mt19937 random(5);
    std::vector<float> ttft;
    for (int i = 0; i < count; ++i) {
      const double value = std::floor(std::exp(static_cast<double>(random() % 1000) / 150));
      ttft.push_back(static_cast<float>(value));
      collector.on_request(completed_at(static_cast<std::uint64_t>(i), i * 0.01, value, 10, 4));
    }
    const RunSeries series = collector.finish();
    const Cdf& cdf = cdf_named(series, "ttft");
    std::sort(ttft.begin(), ttft.end());
    REQUIRE(cdf.shares.size() >= 2);
    CHECK(cdf.shares.front() == 0);
    CHECK(cdf.shares.back() == 1);
    CHECK(cdf.values_ms.front() == Approx(ttft.front()));
    CHECK(cdf.values_ms.back() == Approx(ttft.back()));
    CHECK(cdf.shares.size() <= 2 * SeriesDetail().quantiles);
    CHECK(std::is_sorted(cdf.values_ms.begin(), cdf.values_ms.end()));
    for (std::size_t i = 0; i < cdf.shares.size(); ++i) {
      const auto [rank, fraction] = percentile_rank(ttft.size(), 100 * cdf.shares[i]);
      const double above = rank + 1 < ttft.size() ? ttft[rank + 1] : ttft[rank];
      CHECK(cdf.values_ms[i] == Approx(ttft[rank] + (above - ttft[rank]) * fraction));
    }
    CHECK(cdf_named(series, "itl").shares.empty());
  }
}

TEST_CASE("latency over time has every request in one bin, and thins the dots alone") {
  SeriesDetail detail;
  detail.points = 100;
  detail.latency_bins = 16;
  SeriesCollector collector(detail);
  collector.watch(SimTime::from_ms(5000));
  double most = 0;
  for (int i = 0; i < 1999; ++i) {
    const double ttft = 10 + (i * 7919) % 1000;
    most = std::max(most, ttft);
    collector.on_request(
        completed_at(static_cast<std::uint64_t>(i), 5 + i * 0.1, ttft, 10, 1 + i % 3));
  }
  const LatencyOverTime latency = collector.finish().latency;
  CHECK_FALSE(latency.by_first_token);
  CHECK(latency.bins.start_s == 0);
  const std::vector<double>& requests = column_of(latency.bins, "requests");
  CHECK(requests.size() == 16);
  CHECK(std::accumulate(requests.begin(), requests.end(), 0.0) == 1999);
  const std::vector<double>& worst = column_of(latency.bins, "ttft_max");
  CHECK(*std::max_element(worst.begin(), worst.end()) == Approx(most));
  CHECK(latency.every == 20);
  CHECK(latency.points[0].values.size() == 100);
}

TEST_CASE("when all arrive at once, time is that of the first token") {
  SeriesCollector collector({});
  collector.watch(SimTime(0));
  for (int i = 0; i < 50; ++i)
    collector.on_request(completed_at(static_cast<std::uint64_t>(i), 0, 10 + i, 10, 4));
  const LatencyOverTime latency = collector.finish().latency;
  CHECK(latency.by_first_token);
  CHECK(latency.bins.bin_s > 0);
}

TEST_CASE("a run without requests or steps has empty curves") {
  SeriesCollector collector({});
  const RunSeries series = collector.finish();
  CHECK(column_of(series.engine, "decode_seqs").empty());
  CHECK(column_of(series.latency.bins, "requests").empty());
  CHECK(cdf_named(series, "ttft").shares.empty());
}

TEST_CASE("links show as shares of their bandwidth") {
  SeriesCollector collector({});
  collector.watch(SimTime(0));
  collector.on_link({"nvlink", SimTime(0), SimTime::from_ms(10), 1e6, 1e9});
  collector.on_link({"nvlink", SimTime::from_ms(20), SimTime::from_ms(30), 1e7, 1e9});
  const RunSeries series = collector.finish();
  REQUIRE(series.links.size() == 1);
  CHECK(series.links[0].busy.at(0) == Approx(0.1));
  CHECK(series.links[0].busy.at(15) == 0);
  CHECK(series.links[0].busy.at(25) == Approx(1));
}

TEST_CASE("samples of steps are bounded and say how they were taken") {
  SeriesDetail detail;
  detail.points = 10;
  SeriesCollector collector(detail);
  collector.watch(SimTime(0));
  for (int i = 0; i < 95; ++i) collector.on_steps(decode_stretch(100 * i, 5, 3));
  const RunSeries series = collector.finish();
  CHECK(series.decode_steps.samples.size() <= 10);
  CHECK(series.decode_steps.every == 16);
  CHECK(series.decode_steps.samples[1].time_s == Approx(1.6));
  CHECK(series.decode_steps.samples[1].flops == Approx(1e12));
  CHECK(series.decode_steps.samples[1].seconds == Approx(0.01));
  CHECK(series.prefill_steps.samples.empty());
}

TEST_CASE("reports of many runs share the room") {
  CHECK(SeriesDetail::for_runs(1).bins == 1024);
  CHECK(SeriesDetail::for_runs(16).bins == 256);
  CHECK(SeriesDetail::for_runs(100000).bins == 32);
}

}  // namespace servesim
