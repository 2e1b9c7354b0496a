#include "nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace servesim::calibrate::cuda {
namespace {

// Of nvml.h, which not every toolkit brings.
using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0, kInsufficientSize = 7, kMissing = -1;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

struct Utilisation {
  unsigned gpu, memory;
};
/// nvmlProcessInfo_v2_t.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

struct Nvml::Library {
  void* file = nullptr;
  Device device = nullptr;

  ~Library() {
    if (file == nullptr) return;
    call("nvmlShutdown");
    dlclose(file);
  }

  /// What the library's `name` answers; kMissing when it has none.
  template <class... Arguments>
  int status(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    void* symbol = file == nullptr ? nullptr : dlsym(file, name);
    return symbol == nullptr ? kMissing : reinterpret_cast<Function>(symbol)(arguments...);
  }
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    return status(name, arguments...) == kSuccess;
  }
};

Nvml::Nvml(const std::string& bus_id, const char* file) : library_(std::make_unique<Library>()) {
  library_->file = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library_->call("nvmlInit_v2")) return;
  library_->call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &library_->device);
}

Nvml::~Nvml() = default;

void Nvml::describe(Environment& e) const {
  const Library& nvml = *library_;
  char text[96] = {};
  if (nvml.call("nvmlSystemGetDriverVersion", text, static_cast<unsigned>(sizeof(text))))
    e.driver = text;
  if (nvml.device == nullptr) return;
  unsigned value = 0, second = 0;
  if (nvml.call("nvmlDeviceGetMaxClockInfo", nvml.device, kClockSm, &value))
    e.max_clock_mhz = value;
  if (nvml.call("nvmlDeviceGetClockInfo", nvml.device, kClockMemory, &value))
    e.memory_clock_mhz = value;
  if (nvml.call("nvmlDeviceGetEnforcedPowerLimit", nvml.device, &value))
    e.power_limit_w = value * 1e-3;
  if (nvml.call("nvmlDeviceGetPowerManagementDefaultLimit", nvml.device, &value)) {
    e.default_power_limit_w = value * 1e-3;
  }
  if (nvml.call("nvmlDeviceGetEccMode", nvml.device, &value, &second)) e.ecc = value == 1;
  if (nvml.call("nvmlDeviceGetMigMode", nvml.device, &value, &second)) e.mig = value == 1;
  describe_users(e);
  const PowerSample now = sample();
  e.clock_mhz = now.clock_mhz;
  e.power_w = now.power_w;
  e.temperature_c = now.temperature_c;
}

void Nvml::describe_users(Environment& e) const {
  const Library& nvml = *library_;
  Utilisation use{};
  if (nvml.call("nvmlDeviceGetUtilizationRates", nvml.device, &use)) e.utilisation = use.gpu * 0.01;
  std::vector<ProcessInfo> processes(64);
  auto count = static_cast<unsigned>(processes.size());
  const int status =
      nvml.status("nvmlDeviceGetComputeRunningProcesses_v3", nvml.device, &count, processes.data());
  if (status == kInsufficientSize) e.other_processes = static_cast<int>(count);
  if (status != kSuccess) return;
  const auto own = static_cast<unsigned>(getpid());
  e.other_processes = static_cast<int>(
      std::count_if(processes.begin(), processes.begin() + std::min<std::ptrdiff_t>(count, 64),
                    [own](const ProcessInfo& process) { return process.pid != own; }));
}

PowerSample Nvml::sample() const {
  const Library& nvml = *library_;
  PowerSample now;
  if (nvml.device == nullptr) return now;
  unsigned value = 0;
  if (nvml.call("nvmlDeviceGetClockInfo", nvml.device, kClockSm, &value)) now.clock_mhz = value;
  if (nvml.call("nvmlDeviceGetPowerUsage", nvml.device, &value)) now.power_w = value * 1e-3;
  if (nvml.call("nvmlDeviceGetTemperature", nvml.device, kTemperatureGpu, &value))
    now.temperature_c = value;
  unsigned long long reasons = 0;
  if (nvml.call("nvmlDeviceGetCurrentClocksEventReasons", nvml.device, &reasons) ||
      nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", nvml.device, &reasons)) {
    now.throttling = throttle_reasons(reasons);
  }
  return now;
}

}  // namespace servesim::calibrate::cuda
