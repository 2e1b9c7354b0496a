/// Paged decode attention and prefill attention on the cores.
#pragma once

#include <functional>
#include <memory>

#include "backend.hpp"
#include "cpu/cpu_arena.hpp"

namespace servesim::calibrate {

/// Makes an experiment of a call (given its rotation) and of the check of call 0.
using MakeExperiment = std::unique_ptr<Experiment> (*)(ThreadPool&,
                                                       std::function<void(std::int64_t)>,
                                                       std::function<double()>);

std::unique_ptr<Experiment> decode_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool,
                                          MakeExperiment make);
std::unique_ptr<Experiment> prefill_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool,
                                           MakeExperiment make);

}  // namespace servesim::calibrate
