#include "report/timeline.hpp"

#include <algorithm>

namespace servesim {

void TimelineRecorder::on_request(const RequestRecord& record) {
  first_arrival_ = std::min(first_arrival_, record.arrival);
  if (record.status != RequestStatus::kCompleted) return;
  completions_.push_back({record.last_token,
                          static_cast<float>((record.first_token - record.arrival).ms()),
                          static_cast<std::int32_t>(record.generated_tokens)});
}

std::vector<TimelineBucket> TimelineRecorder::buckets(std::size_t count) const {
  std::vector<TimelineBucket> all;
  if (completions_.empty()) return all;
  SimTime last;
  for (const Completion& c : completions_) last = std::max(last, c.at);
  const double begin_s = first_arrival_.seconds();
  const double width_s =
      std::max((last - first_arrival_).seconds(), 1e-9) / static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double from_s = begin_s + width_s * static_cast<double>(i);
    all.push_back({from_s, from_s + width_s, 0, 0, 0});
  }
  for (const Completion& c : completions_) {
    const auto at = static_cast<std::size_t>((c.at - first_arrival_).seconds() / width_s);
    TimelineBucket& bucket = all[std::min(at, count - 1)];
    ++bucket.completed;
    bucket.output_tokens += c.output_tokens;
    bucket.mean_ttft_ms += static_cast<double>(c.ttft_ms);
  }
  for (TimelineBucket& bucket : all) {
    if (bucket.completed > 0) bucket.mean_ttft_ms /= static_cast<double>(bucket.completed);
  }
  return all;
}

}  // namespace servesim
