/// What machine was measured and in what state, as environment.json has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace servesim::calibrate {

/// Unknown numbers are absent, unknown texts empty.
struct Environment {
  std::string backend;  ///< cpu | cuda
  std::string device;   ///< name as the driver or the kernel gives it
  std::string toolkit;  ///< CUDA version, or the compiler
  std::string driver;
  std::string gemm_library;  ///< what GEMMs ran through
  std::string bus_id;
  double memory_bytes = 0;
  double free_bytes = 0;
  std::int64_t units = 0;  ///< streaming multiprocessors, or threads used
  double cache_bytes = 0;  ///< L2 of a GPU, last level of a CPU
  int compute_major = 0, compute_minor = 0;
  int devices = 1;
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<double> clock_mhz, max_clock_mhz, memory_clock_mhz;
  std::optional<double> power_w, power_limit_w, default_power_limit_w;
  std::optional<double> temperature_c;
  std::optional<double> utilisation;  ///< 0 to 1, before anything was run
  std::optional<int> other_processes;
  std::vector<std::string> throttling;  ///< reasons that were active, during the run too
  bool cuda() const { return backend == "cuda"; }
};

/// As environment.json has it.
std::string to_json(const Environment& environment);

/// Clocks and power at one moment of a long run.
struct PowerSample {
  std::optional<double> clock_mhz, power_w, temperature_c;
  std::vector<std::string> throttling;
};

/// Reasons of NVML's bit mask that slow a GPU: idle and application clocks are none.
std::vector<std::string> throttle_reasons(std::uint64_t mask);

/// "12.8" of a CUDA version number 12080.
std::string cuda_version_text(int version);

/// Profile in models/hardware/ that describes the GPU of this name; empty when none does. Names are
/// matched whole: a near name is another GPU.
std::string profile_for_device(const std::string& device_name);
/// The shipped profile that a profile's name begins with ("h100-sxm" of "h100-sxm-measured"); empty
/// when its user named it otherwise.
std::string gpu_of_profile(const std::string& profile_name);

/// What makes timings of this machine doubtful: MIG, others who use it, throttling, a lowered power
/// limit.
std::vector<std::string> state_findings(const Environment& environment);

/// A value of /proc/cpuinfo or /proc/meminfo: of the first line that begins with `key`.
std::string proc_value(const std::string& text, const std::string& key);

}  // namespace servesim::calibrate
