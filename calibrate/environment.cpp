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

std::string profile_for_device(const std::string& device_name, double memory_bytes) {
  const std::string name = lower_case(device_name);
  const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  const bool pcie = has("pcie");
  if (has("h100")) return has("nvl") ? "" : pcie ? "h100-pcie" : "h100-sxm";
  if (has("h200")) return has("nvl") ? "" : "h200-sxm";
  if (has("h20")) return "h20";
  if (has("b200") && !has("gb200")) return "b200";
  if (has("l40s")) return "l40s";
  if (has("a100")) {
    if (pcie) return "a100-pcie";
    return memory_bytes > 60e9 ? "a100-sxm-80g" : "a100-sxm-40g";
  }
  return {};
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
