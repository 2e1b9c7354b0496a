/// The scheduler's settings from flags and vLLM's defaults.
#pragma once

#include "cli/run_spec.hpp"
#include "registry/registries.hpp"
#include "sched/scheduler_config.hpp"

namespace servesim {

/// All settings but the number of KV blocks. `policy_name` is for messages. Throws InputError for
/// flags that contradict the policy or each other.
SchedulerConfig scheduler_settings(const RunSpec& spec, const std::string& policy_name,
                                   const PolicyEntry& policy, const AllocatorEntry& allocator,
                                   const ModelSpec& model, const HardwareSpec& hardware);

}  // namespace servesim
