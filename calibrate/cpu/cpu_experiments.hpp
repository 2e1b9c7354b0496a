/// The suite's kernels with their operands, on the cores.
#pragma once

#include <memory>

#include "backend.hpp"
#include "cpu/cpu_arena.hpp"

namespace servesim::calibrate {

/// Throws InputError for what does not fit and for kernels that a CPU does not have.
std::unique_ptr<Experiment> prepare_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool);

}  // namespace servesim::calibrate
