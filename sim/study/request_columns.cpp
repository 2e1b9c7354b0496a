#include "study/request_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/metrics_collector.hpp"
#include "report/percentile.hpp"

namespace servesim {

void RequestColumns::on_request(const RequestRecord& record) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const auto at = static_cast<std::size_t>(record.index);
  if (at >= ttft_ms_.size()) {
    for (std::vector<float>* column : {&ttft_ms_, &tpot_ms_, &e2el_ms_}) {
      column->resize(at + 1, kNone);
    }
  }
  if (record.status != RequestStatus::kCompleted) return;
  ttft_ms_[at] = static_cast<float>((record.first_token - record.arrival).ms());
  e2el_ms_[at] = static_cast<float>((record.last_token - record.arrival).ms());
  const double tpot = tpot_ms_of(record);
  if (tpot >= 0) tpot_ms_[at] = static_cast<float>(tpot);
}

PairedDifference paired_difference(const std::vector<float>& base,
                                   const std::vector<float>& other) {
  std::vector<float> differences;
  std::int64_t improved = 0;
  std::int64_t worsened = 0;
  for (std::size_t i = 0; i < std::min(base.size(), other.size()); ++i) {
    const float difference = other[i] - base[i];
    if (std::isnan(difference)) continue;
    differences.push_back(difference);
    improved += difference < 0 ? 1 : 0;
    worsened += difference > 0 ? 1 : 0;
  }
  PairedDifference result;
  if (differences.empty()) return result;
  const auto all = static_cast<double>(differences.size());
  result.pairs = static_cast<std::int64_t>(differences.size());
  result.median_ms = summarize(differences).median;
  result.improved = static_cast<double>(improved) / all;
  result.worsened = static_cast<double>(worsened) / all;
  return result;
}

}  // namespace servesim
