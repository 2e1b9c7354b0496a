// The CPU backend: the suite on this machine's cores.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "backend.hpp"
#include "core/error.hpp"
#include "cpu/cpu_arena.hpp"
#include "cpu/cpu_experiments.hpp"
#include "cpu/cpu_kernels.hpp"
#include "text.hpp"

namespace servesim::calibrate {
namespace {

constexpr double kMebibyte = 1 << 20;

int usable_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

double last_level_cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  constexpr double kUnknown = 32 * kMebibyte;
  return bytes > 0 ? static_cast<double>(bytes) : kUnknown;
}

double kibibytes(const std::string& value) {
  return value.empty() ? 0 : std::strtod(value.c_str(), nullptr) * 1024;
}

Environment describe_machine(int threads) {
  Environment e;
  e.backend = "cpu";
  const std::string cpu = read_text("/proc/cpuinfo"), memory = read_text("/proc/meminfo");
  e.device = proc_value(cpu, "model name");
  if (e.device.empty()) e.device = "CPU";
  e.toolkit = print_to_string("compiler %s, %s kernels, times are CPU time over threads",
                              __VERSION__, cpu::instruction_set());
  e.gemm_library = cpu::has_openblas() ? "OpenBLAS, panels converted from bf16"
                                       : "own blocked GEMM (no OpenBLAS)";
  e.memory_bytes = kibibytes(proc_value(memory, "MemTotal"));
  e.free_bytes = kibibytes(proc_value(memory, "MemAvailable"));
  e.units = threads;
  e.cache_bytes = last_level_cache_bytes();
  const std::string mhz = proc_value(cpu, "cpu MHz");
  if (!mhz.empty()) e.clock_mhz = std::strtod(mhz.c_str(), nullptr);
  // Load beyond what idles: other programs that want the same cores.
  const double load = std::strtod(read_text("/proc/loadavg").c_str(), nullptr);
  e.utilisation = std::min(load / static_cast<double>(std::thread::hardware_concurrency()), 1.0);
  return e;
}

/// How much of the cores others leave: CPU time over wall time of a quarter of a second of work.
double share_of_cores(ThreadPool& pool) {
  constexpr double kProbeS = 0.25, kLeast = 0.05;
  const auto start = std::chrono::steady_clock::now();
  const double busy = pool.busy_us();
  double wall_s = 0;
  do {
    pool.run(8 << 20, 1 << 16,
             [](std::int64_t begin, std::int64_t end) { cpu::peak_fma(end - begin); });
    wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (wall_s < kProbeS);
  return std::clamp((pool.busy_us() - busy) * 1e-6 / wall_s, kLeast, 1.0);
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, std::uint64_t seed)
      : environment_(describe_machine(threads)),
        pool_(threads),
        arena_(pool_, arena_bytes(), seed) {
    const std::string missing = cpu::missing_instructions();
    if (!missing.empty()) {
      throw InputError("this calibrate was built for a machine with " + missing +
                       ", which this one lacks; build it here");
    }
    share_ = share_of_cores(pool_);
  }

  const Environment& environment() const override { return environment_; }

  SuiteLimits limits() const override {
    SuiteLimits limits;
    limits.arena_bytes = static_cast<double>(arena_.bytes());
    // A core of the last decade; only the plan hangs on these.
    limits.flops_per_s = 30e9 * static_cast<double>(environment_.units);
    limits.bytes_per_s = 10e9;
    limits.share = share_;
    return limits;
  }

  std::unique_ptr<Experiment> prepare(const Case& c) override {
    return prepare_on_cpu(c, arena_, pool_);
  }

 private:
  std::int64_t arena_bytes() const {
    // Regions for five types and the results, with half of what is free left alone.
    constexpr double kRegions = 6;
    constexpr double kLeast = 80 * kMebibyte, kMost = 256 * kMebibyte;  // the largest weight: 64
    const double wanted = std::clamp(2 * environment_.cache_bytes, kLeast, kMost);
    const double room = environment_.free_bytes / 2 / kRegions;
    if (room < kLeast) {
      throw InputError(print_to_string("not enough memory: %.0f MiB are free, %.0f MiB are needed",
                                       environment_.free_bytes / kMebibyte,
                                       2 * kRegions * kLeast / kMebibyte));
    }
    const auto page = static_cast<std::int64_t>(2 * kMebibyte);
    return static_cast<std::int64_t>(std::min(wanted, room)) / page * page;
  }

  Environment environment_;
  ThreadPool pool_;
  CpuArena arena_;
  double share_ = 1;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads, std::uint64_t seed) {
  return std::make_unique<CpuBackend>(threads > 0 ? threads : usable_threads(), seed);
}

}  // namespace servesim::calibrate
