#include "environment.hpp"

#include <array>
#include <sstream>
#include <utility>

#include "text.hpp"

namespace servesim::calibrate {
namespace {

void add(JsonObject& json, const char* key, const std::optional<double>& value) {
  if (value) json.number(key, *value);
}
void add(JsonObject& json, const char* key, const std::string& value) {
  if (!value.empty()) json.text(key, value);
}

}  // namespace

std::string to_json(const Environment& e) {
  JsonObject json;
  add(json, "backend", e.backend);
  add(json, "device", e.device);
  add(json, "toolkit", e.toolkit);
  add(json, "driver", e.driver);
  add(json, "gemm_library", e.gemm_library);
  add(json, "bus_id", e.bus_id);
  json.number("memory_bytes", e.memory_bytes, 15).number("free_bytes", e.free_bytes, 15);
  json.number("units", static_cast<double>(e.units)).number("cache_bytes", e.cache_bytes, 15);
  if (e.cuda()) {
    json.text("compute_capability", print_to_string("%d.%d", e.compute_major, e.compute_minor));
    json.number("devices", e.devices);
  }
  if (e.ecc) json.boolean("ecc", *e.ecc);
  if (e.mig) json.boolean("mig", *e.mig);
  add(json, "clock_mhz", e.clock_mhz);
  add(json, "max_clock_mhz", e.max_clock_mhz);
  add(json, "memory_clock_mhz", e.memory_clock_mhz);
  add(json, "power_w", e.power_w);
  add(json, "power_limit_w", e.power_limit_w);
  add(json, "default_power_limit_w", e.default_power_limit_w);
  add(json, "temperature_c", e.temperature_c);
  add(json, "utilisation", e.utilisation);
  if (e.other_processes) json.number("other_processes", *e.other_processes);
  std::vector<std::string> reasons;
  for (const std::string& reason : e.throttling) reasons.push_back(json_string(reason));
  json.raw("throttling", json_array(reasons, 1));
  return json.str();
}

std::vector<std::string> throttle_reasons(std::uint64_t mask) {
  // nvmlClocksEventReasons* of nvml.h; 0x1 idle, 0x2 application clocks, 0x10 sync boost and 0x100
  // display clocks say nothing of load or heat.
  constexpr std::array<std::pair<std::uint64_t, const char*>, 5> kReasons{{
      {0x4, "software power cap"},
      {0x8, "hardware slowdown"},
      {0x20, "software thermal slowdown"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "hardware power brake"},
  }};
  std::vector<std::string> reasons;
  for (const auto& [bit, name] : kReasons) {
    if ((mask & bit) != 0) reasons.emplace_back(name);
  }
  return reasons;
}

std::string cuda_version_text(int version) {
  return print_to_string("%d.%d", version / 1000, version % 1000 / 10);
}

namespace {

/// Names that drivers give GPUs, without "NVIDIA ", and their profiles. Whole names: GH200, H200
/// NVL, H20-3e, slices by MIG and the like hold a shorter name and are other GPUs.
constexpr std::array<std::pair<const char*, const char*>, 9> kGpus{{
    {"h100 80gb hbm3", "h100-sxm"},
    {"h100 pcie", "h100-pcie"},
    {"h200", "h200-sxm"},
    {"h20", "h20"},
    {"b200", "b200"},
    {"l40s", "l40s"},
    {"a100-sxm4-80gb", "a100-sxm-80g"},
    {"a100-sxm4-40gb", "a100-sxm-40g"},
    {"a100 80gb pcie", "a100-pcie"},  // the 40 GB one has slower memory
}};

}  // namespace

std::string profile_for_device(const std::string& device_name) {
  std::string name = lower_case(trimmed(device_name));
  const std::string maker = "nvidia ";
  if (name.rfind(maker, 0) == 0) name = name.substr(maker.size());
  for (const auto& [device, profile] : kGpus) {
    if (name == device) return profile;
  }
  return {};
}

std::string gpu_of_profile(const std::string& profile_name) {
  for (const auto& [device, profile] : kGpus) {
    const std::string variant = std::string(profile) + "-";
    if (profile_name == profile || profile_name.rfind(variant, 0) == 0) return profile;
  }
  return {};
}

std::vector<std::string> state_findings(const Environment& e) {
  std::vector<std::string> found;
  const double used = e.utilisation.value_or(0);
  constexpr double kBusyGpu = 0.1, kBusyCpu = 0.5;
  if (e.mig.value_or(false)) {
    found.emplace_back("MIG is on: a slice of the GPU is measured, not the GPU");
  }
  if (e.cuda() && used > kBusyGpu) {
    found.push_back(
        print_to_string("busy GPU: %.0f %% utilised before anything was run", 100 * used));
  }
  if (e.cuda() && e.other_processes.value_or(0) > 0) {
    found.push_back(
        print_to_string("busy GPU: other processes that use it: %d", *e.other_processes));
  }
  if (!e.cuda() && used > kBusyCpu) {
    found.push_back(
        print_to_string("busy machine: load of %.0f %% of its cores at the start", 100 * used));
  }
  for (const std::string& reason : e.throttling) found.push_back("throttling: " + reason);
  if (e.power_limit_w && e.default_power_limit_w &&
      *e.power_limit_w < *e.default_power_limit_w - 1) {
    found.push_back(print_to_string("power limit lowered to %.0f W of %.0f W", *e.power_limit_w,
                                    *e.default_power_limit_w));
  }
  return found;
}

std::string proc_value(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto colon = line.find(':');
    if (colon != std::string::npos) return trimmed(line.substr(colon + 1));
  }
  return {};
}

}  // namespace servesim::calibrate
