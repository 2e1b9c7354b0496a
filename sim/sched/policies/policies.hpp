/// The factories of all batching policies; sim/registry/builtins.cpp gives them their names.
#pragma once

#include <memory>

#include "sched/batch_policy.hpp"

namespace servesim {

std::unique_ptr<BatchPolicy> make_static(const SchedulerConfig& config, SequenceSink& sink,
                                         ScheduleLog* log, std::uint64_t seed);
std::unique_ptr<BatchPolicy> make_continuous(const SchedulerConfig& config, SequenceSink& sink,
                                             ScheduleLog* log, std::uint64_t seed);
std::unique_ptr<BatchPolicy> make_chunked(const SchedulerConfig& config, SequenceSink& sink,
                                          ScheduleLog* log, std::uint64_t seed);

}  // namespace servesim
