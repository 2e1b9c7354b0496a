/// Engine configurations as JSON files (--engine-config): the scheduler's settings and a linear
/// step time, as recorded schedules state them. docs/formats.md lists the keys.
#pragma once

#include <string>

#include "sched/scheduler_config.hpp"

namespace servesim {

struct EngineConfig {
  SchedulerConfig scheduler;
  /// Step time = base + per_token * tokens of the step; a step without tokens takes none.
  double base_us = 0;
  double per_token_us = 0;
};

/// Throws InputError for unknown keys (with the nearest known one), missing or absurd values, and
/// settings that contradict each other.
EngineConfig load_engine_config(const std::string& path);

}  // namespace servesim
