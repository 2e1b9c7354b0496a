#include "study/slo_probe.hpp"

#include <cmath>
#include <limits>

namespace servesim {

std::int64_t SloTarget::allowed_misses(const TraceCount& trace) const {
  const auto all = static_cast<double>(counted(trace));
  // 0.99 of 200 is 198, whatever the product's last bits say.
  const auto needed = static_cast<std::int64_t>(std::ceil(attainment * all - 1e-9 * all));
  return counted(trace) - needed;
}

bool is_unservable(std::int64_t input_tokens, std::int64_t output_tokens, std::int64_t context) {
  SchedulerConfig most;
  most.max_model_len = context;
  most.num_gpu_blocks = std::numeric_limits<std::int32_t>::max();
  most.block_size = 16;
  return !rejection_reason(most, input_tokens, output_tokens).empty();
}

void SloProbe::on_request(const RequestRecord& record) {
  MetricsCollector::on_request(record);
  if (record.status == RequestStatus::kRejected) {
    if (is_unservable(record.input_tokens, record.output_tokens, context_)) {
      ++misses_.unservable;
    } else {
      ++misses_.missed;
      ++misses_.rejected;
    }
  } else if (record.status == RequestStatus::kCompleted) {
    if (good() > misses_.good) {
      misses_.good = good();
      return;
    }
    count_miss(record);
  }
  if (record.status == RequestStatus::kUnfinished && !control_.stop) {
    ++misses_.missed;
    ++misses_.rejected;
  }
  if (misses_.counted(target_) > allowed_misses_ && !control_.stop) {
    abandoned_ = true;
    control_.stop = true;
  }
}

void SloProbe::count_miss(const RequestRecord& record) {
  const auto over = [](const std::optional<double>& target, double value) {
    return target && value > *target ? 1 : 0;
  };
  ++misses_.missed;
  misses_.ttft += over(targets_.ttft_ms, (record.first_token - record.arrival).ms());
  misses_.tpot += over(targets_.tpot_ms, tpot_ms_of(record));
  misses_.e2el += over(targets_.e2el_ms, (record.last_token - record.arrival).ms());
}

}  // namespace servesim
