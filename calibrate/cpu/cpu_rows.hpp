/// Elementwise kernels and sampling on the cores: work that goes row by row.
#pragma once

#include "cpu/cpu_attention.hpp"

namespace servesim::calibrate {

std::unique_ptr<Experiment> rms_norm_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool,
                                            MakeExperiment make);
std::unique_ptr<Experiment> rope_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool,
                                        MakeExperiment make);
std::unique_ptr<Experiment> silu_mul_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool,
                                            MakeExperiment make);
std::unique_ptr<Experiment> softmax_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool,
                                           MakeExperiment make);
std::unique_ptr<Experiment> sampling_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool,
                                            MakeExperiment make);

}  // namespace servesim::calibrate
