// Continuous batching with chunked prefill: vLLM V1's default.
#include "core/error.hpp"
#include "sched/policies/policies.hpp"
#include "sched/vllm_scheduler.hpp"

namespace servesim {

std::unique_ptr<BatchPolicy> make_chunked(const SchedulerConfig& config, SequenceSink& sink,
                                          ScheduleLog* log, std::uint64_t seed) {
  if (!config.enable_chunked_prefill)
    throw InputError("policy 'chunked' needs chunked prefill; use 'continuous'");
  return std::make_unique<VllmScheduler>(config, sink, log, seed);
}

}  // namespace servesim
