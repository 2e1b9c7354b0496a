/// What runs the suite: this machine's cores or a GPU.
#pragma once

#include <memory>
#include <string>

#include "environment.hpp"
#include "kernel_case.hpp"
#include "planner.hpp"

namespace servesim::calibrate {

/// A kernel with its operands in place.
class Experiment {
 public:
  virtual ~Experiment() = default;
  /// Runs once and compares with the reference: the largest error over what is tolerated, so that
  /// above 1 is wrong.
  virtual double check() = 0;
  /// Mean microseconds of one of `calls` calls in a row, each on other operands.
  virtual double time_us(int calls) = 0;
};

/// What the kernels run on.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const Environment& environment() const = 0;
  virtual SuiteLimits limits() const = 0;
  /// Throws InputError when memory does not suffice.
  virtual std::unique_ptr<Experiment> prepare(const Case& c) = 0;
  /// Clocks and power at this moment, where they can be asked for.
  virtual PowerSample sample_power() { return {}; }
};

/// This machine's cores. `threads` 0: as many as the process may use.
std::unique_ptr<Backend> make_cpu_backend(int threads, std::uint64_t seed);

/// GPU `device`. Throws InputError without one, with a driver older than the toolkit, or with too
/// little free memory; also when calibrate was built without CUDA.
std::unique_ptr<Backend> make_cuda_backend(int device, std::uint64_t seed);

}  // namespace servesim::calibrate
