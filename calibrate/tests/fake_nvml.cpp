// libnvidia-ml.so.1 as far as calibrate asks it, with the layouts of nvml.h.
#include "fake_nvml.hpp"

#include <cstdio>

using servesim::calibrate::cuda::FakeNvml;

extern "C" {

FakeNvml fake_nvml_answers;

struct FakeProcess {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

namespace {
int answer(unsigned* to, unsigned value) {
  *to = value;
  return 0;
}
}  // namespace

int nvmlInit_v2() {
  return fake_nvml_answers.init_status;
}
int nvmlShutdown() {
  ++fake_nvml_answers.shutdowns;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "580.65.06");
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  std::snprintf(fake_nvml_answers.asked_for, sizeof(fake_nvml_answers.asked_for), "%s", bus_id);
  *device = &fake_nvml_answers;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* clock) {
  return answer(clock, fake_nvml_answers.max_clock);
}
int nvmlDeviceGetClockInfo(void*, int kind, unsigned* clock) {
  return answer(clock, kind == 2 ? fake_nvml_answers.memory_clock : fake_nvml_answers.sm_clock);
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* mw) {
  return answer(mw, fake_nvml_answers.limit_mw);
}
int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* mw) {
  return answer(mw, fake_nvml_answers.default_limit_mw);
}
int nvmlDeviceGetPowerUsage(void*, unsigned* mw) {
  return answer(mw, fake_nvml_answers.power_mw);
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  return answer(celsius, fake_nvml_answers.temperature);
}
int nvmlDeviceGetEccMode(void*, unsigned* now, unsigned* next) {
  *next = 0;
  return answer(now, fake_nvml_answers.ecc);
}
int nvmlDeviceGetMigMode(void*, unsigned* now, unsigned* next) {
  *next = 1;
  return answer(now, fake_nvml_answers.mig);
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) {
  rates[1] = 99;  // of memory, which is not asked for
  return answer(rates, fake_nvml_answers.utilisation);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, FakeProcess* processes) {
  const unsigned room = *count;
  *count = fake_nvml_answers.processes;
  if (*count > room) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  for (unsigned i = 0; i < *count; ++i) processes[i] = {fake_nvml_answers.pids[i], 1 << 30, 0, 0};
  return 0;
}
// An older driver's name for the reasons: the newer one is absent.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* mask) {
  *mask = fake_nvml_answers.throttle_mask;
  return 0;
}

}  // extern "C"
