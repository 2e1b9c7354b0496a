// Iteration-level batching in which a prompt is prefilled whole: vLLM V1 with chunked prefill off.
#include "core/error.hpp"
#include "sched/policies/policies.hpp"
#include "sched/vllm_scheduler.hpp"

namespace servesim {

std::unique_ptr<BatchPolicy> make_continuous(const SchedulerConfig& config, SequenceSink& sink,
                                             ScheduleLog* log, std::uint64_t seed) {
  if (config.enable_chunked_prefill)
    throw InputError("policy 'continuous' prefills whole prompts; use 'chunked'");
  return std::make_unique<VllmScheduler>(config, sink, log, seed);
}

}  // namespace servesim
