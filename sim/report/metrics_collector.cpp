#include "report/metrics_collector.hpp"

#include <algorithm>

#include "report/percentile.hpp"

namespace servesim {

std::int64_t output_tokens_of(const RequestRecord& record) {
  const bool ended = record.status == RequestStatus::kCompleted;
  return ended && record.generated_tokens > 0 ? record.generated_tokens : record.output_tokens;
}

double tpot_ms_of(const RequestRecord& record) {
  const std::int64_t outputs = output_tokens_of(record);
  if (outputs < 2) return -1;
  return (record.last_token - record.first_token).ms() / static_cast<double>(outputs - 1);
}

void MetricsCollector::count(Reasons& reasons, std::string_view reason) {
  const auto found = reasons.find(reason);
  if (found != reasons.end()) {
    ++found->second;
  } else {
    reasons.emplace(reason, 1);
  }
}

void MetricsCollector::on_request(const RequestRecord& record) {
  ++metrics_.total;
  first_arrival_ = std::min(first_arrival_, record.arrival);
  last_arrival_ = std::max(last_arrival_, record.arrival);
  last_token_ = std::max(last_token_, record.last_token);
  switch (record.status) {
    case RequestStatus::kCompleted:
      add_completed(record);
      add_wait(record);
      break;
    case RequestStatus::kUnfinished:
      ++metrics_.unfinished;
      count(unfinished_reasons_, record.reason);
      add_wait(record);
      break;
    case RequestStatus::kRejected:
      ++metrics_.rejected;
      count(rejections_, record.reason);
      break;
  }
}

void MetricsCollector::add_completed(const RequestRecord& record) {
  ++metrics_.completed;
  metrics_.total_input_tokens += record.input_tokens;
  metrics_.total_output_tokens += output_tokens_of(record);
  const double ttft = (record.first_token - record.arrival).ms();
  const double tpot = tpot_ms_of(record);
  const double e2el = (record.last_token - record.arrival).ms();
  ttft_ms_.push_back(static_cast<float>(ttft));
  if (tpot >= 0) tpot_ms_.push_back(static_cast<float>(tpot));
  e2el_ms_.push_back(static_cast<float>(e2el));
  if (meets_targets(ttft, tpot, e2el)) ++metrics_.good;
}

void MetricsCollector::add_wait(const RequestRecord& record) {
  if (record.scheduled < record.arrival) return;  // never reached a step
  waits_.push_back({static_cast<float>(record.arrival.seconds()),
                    static_cast<float>((record.scheduled - record.arrival).seconds())});
}

bool MetricsCollector::meets_targets(double ttft_ms, double tpot_ms, double e2el_ms) const {
  return !(targets_.ttft_ms && ttft_ms > *targets_.ttft_ms) &&
         !(targets_.tpot_ms && tpot_ms > *targets_.tpot_ms) &&
         !(targets_.e2el_ms && e2el_ms > *targets_.e2el_ms);
}

StepWatch ObserverList::watch(SimTime first_arrival) {
  StepWatch all;
  for (Observer* observer : observers_) {
    const StepWatch one = observer->watch(first_arrival);
    all.steps = all.steps || one.steps;
    if (one.singly_from >= one.singly_until) continue;
    const bool first = all.singly_from >= all.singly_until;
    all.singly_from = first ? one.singly_from : std::min(all.singly_from, one.singly_from);
    all.singly_until = first ? one.singly_until : std::max(all.singly_until, one.singly_until);
  }
  return all;
}

Metrics MetricsCollector::finish() {
  metrics_.has_goodput = targets_.ttft_ms || targets_.tpot_ms || targets_.e2el_ms;
  if (last_token_ > first_arrival_) {
    metrics_.duration_s = (last_token_ - first_arrival_).seconds();
  }
  metrics_.all_at_once = metrics_.total > 1 && first_arrival_ == last_arrival_;
  metrics_.saturated = is_saturated(waits_);
  metrics_.ttft_ms = summarize(ttft_ms_);
  metrics_.tpot_ms = summarize(tpot_ms_);
  metrics_.e2el_ms = summarize(e2el_ms_);
  metrics_.itl_ms = itl_.summarize();
  metrics_.rejections.assign(rejections_.begin(), rejections_.end());
  metrics_.unfinished_reasons.assign(unfinished_reasons_.begin(), unfinished_reasons_.end());
  return metrics_;
}

}  // namespace servesim
