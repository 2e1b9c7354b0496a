#include "report/series_collector.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "engine/step_report.hpp"
#include "report/metrics_collector.hpp"

namespace servesim {
namespace {

/// Channels of the engine's curves.
enum Channel : std::size_t {
  kDecodeSeqs,
  kPrefillSeqs,
  kWaiting,
  kKvUsed,
  kKvInternal,
  kKvReserved,
  kKvExternal,
  kPrefillTokens,
  kDecodeTokens,
  kFlops,
  kHbmBytes,
  kBusy,
  kBatchMax,
  kFirstComponent,
};
constexpr std::size_t kChannels = kFirstComponent + kComponentCount;
constexpr std::array<std::string_view, kFirstComponent> kChannelNames{
    "decode_seqs", "prefill_seqs",         "waiting",
    "kv_used",     "kv_internal",          "kv_reserved",
    "kv_external", "prefill_tokens_per_s", "decode_tokens_per_s",
    "flops_per_s", "hbm_bytes_per_s",      "busy",
    "batch_max"};

/// Amounts, shown per second; all others are levels.
bool is_amount(std::size_t channel) {
  return (channel >= kPrefillTokens && channel <= kHbmBytes) || channel >= kFirstComponent;
}

}  // namespace

SeriesDetail SeriesDetail::for_runs(std::size_t runs) {
  const std::size_t share =
      std::clamp<std::size_t>(4096 / std::bit_ceil(std::max<std::size_t>(runs, 1)), 32, 1024);
  return {share, share / 4, 2 * share, share / 4};
}

SeriesCollector::SeriesCollector(const SeriesDetail& detail)
    : detail_(detail),
      bins_(kChannels, detail.bins),
      decode_samples_(detail.points),
      prefill_samples_(detail.points) {}

StepWatch SeriesCollector::watch(SimTime first_arrival) {
  origin_ = first_arrival;
  StepWatch watch;
  watch.steps = true;
  return watch;
}

void SeriesCollector::on_request(const RequestRecord& record) {
  if (record.scheduled >= record.arrival) {
    bins_.add(kWaiting, record.arrival, record.scheduled, 1);
  }
  if (record.preemptions > 0) on_resumed(record.index, record.last_token);  // ended in the queue
  if (record.status != RequestStatus::kCompleted) return;
  done_.push_back({static_cast<float>(since_start(record.arrival)),
                   static_cast<float>(since_start(record.first_token)),
                   static_cast<float>((record.first_token - record.arrival).ms()),
                   static_cast<float>(tpot_ms_of(record)),
                   static_cast<float>((record.last_token - record.arrival).ms()),
                   static_cast<std::uint32_t>(record.index)});
}

void SeriesCollector::on_preempted(std::uint64_t index, SimTime at) {
  preempted_[index] = at;
}

void SeriesCollector::on_resumed(std::uint64_t index, SimTime at) {
  const auto found = preempted_.find(index);
  if (found == preempted_.end()) return;
  bins_.add(kWaiting, found->second, at, 1);
  preempted_.erase(found);
}

void SeriesCollector::on_steps(const StepReport& report) {
  add_kv(report);
  if (report.steps == 0) return;
  add_work(report);
  sample(report);
}

/// The level told before held until now. The levels of a stretch are a line, corrected to have the
/// stretch's integral.
void SeriesCollector::add_kv(const StepReport& report) {
  const auto replica = static_cast<std::size_t>(report.replica);
  if (levels_.size() <= replica) levels_.resize(replica + 1);
  Level& level = levels_[replica];
  const auto level_of = [](const KvUsage& kv, SimTime since) {
    return Level{since, static_cast<double>(kv.allocated - kv.internal - kv.reserved),
                 static_cast<double>(kv.internal), static_cast<double>(kv.reserved),
                 static_cast<double>(kv.external)};
  };
  const Level first = level_of(report.kv, report.scheduled);
  bins_.add(kKvUsed, level.since, report.scheduled, level.used);
  bins_.add(kKvInternal, level.since, report.scheduled, level.internal);
  bins_.add(kKvReserved, level.since, report.scheduled, level.reserved);
  bins_.add(kKvExternal, level.since, report.scheduled, level.external);
  level = level_of(report.kv_last, report.last_scheduled);
  if (report.steps < 2) return;
  const SimTime from = first.since;
  const SimTime to = level.since;
  const auto fit = [&](Channel channel, double begin, double end, double integral) {
    const double off = integral / static_cast<double>((to - from).ns()) - (begin + end) / 2;
    bins_.add_ramp(channel, from, to, begin + off, end + off);
  };
  if (from == to) return;
  bins_.add(kKvExternal, from, to, first.external);  // regions stay where they are
  const KvLevels& integral = report.kv_integral;
  fit(kKvUsed, first.used, level.used, integral.allocated - integral.internal - integral.reserved);
  fit(kKvInternal, first.internal, level.internal, integral.internal);
  fit(kKvReserved, first.reserved, level.reserved, integral.reserved);
}

void SeriesCollector::add_work(const StepReport& report) {
  const double busy_share = (report.end - report.begin).ns() > 0
                                ? report.busy.seconds() / (report.end - report.begin).seconds()
                                : 0;
  const auto decodes = static_cast<double>(report.decode_seqs);
  const auto add = [&](std::size_t channel, double height) {
    if (height != 0) bins_.add(channel, report.begin, report.end, height * busy_share);
  };
  add(kDecodeSeqs, decodes);
  add(kPrefillSeqs, static_cast<double>(report.chunks.size()));
  add(kBusy, 1);
  bins_.raise(kBatchMax, report.begin, report.end, static_cast<double>(report.seqs()));
  const auto amount = [&](std::size_t channel, double value) {
    if (value != 0) bins_.add_amount(channel, report.begin, report.end, value);
  };
  amount(kPrefillTokens, static_cast<double>(report.prefill_tokens()));
  amount(kDecodeTokens, static_cast<double>(report.decode_tokens * report.steps));
  amount(kFlops, report.flops);
  amount(kHbmBytes, report.hbm_bytes);
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    amount(kFirstComponent + i, report.seconds[i]);
  }
}

void SeriesCollector::sample(const StepReport& report) {
  if (report.flops <= 0 || report.hbm_bytes <= 0 || report.busy.ns() <= 0) return;
  Thinned<StepSample>& samples = report.chunks.empty() ? decode_samples_ : prefill_samples_;
  if (!samples.wants()) return;
  const auto steps = static_cast<double>(report.steps);
  StepSample sample;
  sample.time_s = since_start(report.begin);
  sample.steps = report.steps;
  sample.seconds = report.busy.seconds() / steps;
  sample.flops = report.flops / steps;
  sample.hbm_bytes = report.hbm_bytes / steps;
  sample.prefill_tokens = static_cast<double>(report.prefill_tokens());
  sample.decode_seqs = static_cast<double>(report.decode_seqs);
  sample.context = static_cast<double>(report.decode_context) +
                   static_cast<double>(report.context_growth) * (steps - 1) / 2;
  samples.add(sample);
}

void SeriesCollector::on_link(const LinkReport& report) {
  auto found = links_.find(report.link);
  if (found == links_.end()) {
    found = links_.emplace(report.link, Link{bins_.add_channel(), report.bytes_per_s}).first;
  }
  bins_.add_amount(found->second.channel, report.begin, report.end, report.bytes);
}

OverTime SeriesCollector::engine_curves() {
  OverTime curves;
  curves.start_s = since_start(bins_.start());
  curves.bin_s = bins_.width().seconds();
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const std::string name =
        channel < kFirstComponent
            ? std::string(kChannelNames[channel])
            : "time_" + std::string(kComponentNames[channel - kFirstComponent]);
    std::vector<double> values;
    if (channel == kBatchMax) {
      values = bins_.maximum(channel);
      values.resize(bins_.used());
    } else if (is_amount(channel)) {
      values = bins_.integral(channel);
      for (double& value : values) value /= curves.bin_s;
    } else {
      values = bins_.mean(channel);
    }
    curves.columns.push_back({name, std::move(values)});
  }
  return curves;
}

RunSeries SeriesCollector::finish() {
  RunSeries series;
  series.engine = engine_curves();
  for (const auto& [name, link] : links_) {
    std::vector<double> busy = bins_.integral(link.channel);
    for (double& value : busy) value /= series.engine.bin_s * link.bytes_per_s;
    series.links.push_back({name, std::move(busy)});
  }
  series.decode_steps = {decode_samples_.kept(), decode_samples_.every()};
  series.prefill_steps = {prefill_samples_.kept(), prefill_samples_.every()};
  const auto column = [this](float Done::*field) {
    std::vector<float> values;
    values.reserve(done_.size());
    for (const Done& done : done_) {
      if (done.*field >= 0) values.push_back(done.*field);
    }
    return values;
  };
  series.cdfs = {cdf_of("ttft", column(&Done::ttft_ms)), cdf_of("tpot", column(&Done::tpot_ms)),
                 itl_cdf(), cdf_of("e2el", column(&Done::e2el_ms))};
  series.latency = latency_over_time();
  return series;
}

}  // namespace servesim
