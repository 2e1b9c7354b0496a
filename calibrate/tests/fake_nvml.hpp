/// A driver's management library that answers what a test tells it.
#pragma once

namespace servesim::calibrate::cuda {

constexpr int kFakeMostProcesses = 100;

/// What the fake library answers; a test gets at it through the symbol `fake_nvml_answers`.
struct FakeNvml {
  int init_status = 0;
  unsigned sm_clock = 1980, memory_clock = 2619, max_clock = 2010;
  unsigned power_mw = 120'000, limit_mw = 700'000, default_limit_mw = 700'000;
  unsigned temperature = 41, utilisation = 0, ecc = 1, mig = 0;
  unsigned long long throttle_mask = 0;
  unsigned processes = 0;
  unsigned pids[kFakeMostProcesses] = {};
  int shutdowns = 0;
  char asked_for[64] = {};  ///< the PCI address
};

}  // namespace servesim::calibrate::cuda
