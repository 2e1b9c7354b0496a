// Reading what a measurement left in its folder.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/params.hpp"
#include "cost/csv_rows.hpp"
#include "measured_profile.hpp"

namespace servesim::calibrate {
namespace {

constexpr double kMost = 1e15;

constexpr double kLeastUs = 1e-6;  ///< a time of nothing would be divided by

Kernel kernel_named(const std::string& name, const std::string& path, std::size_t row) {
  for (int i = 0; i <= static_cast<int>(Kernel::kAllReduce); ++i) {
    if (name == name_of(static_cast<Kernel>(i))) return static_cast<Kernel>(i);
  }
  throw InputError(fmt::format(
      "{}: row {}: unknown kernel '{}'; `calibrate measure` writes this file", path, row, name));
}

DType type_named(const std::string& name, const std::string& path, std::size_t row) {
  for (int i = 0; i <= static_cast<int>(DType::kFp32); ++i) {
    if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  throw InputError(fmt::format("{}: row {}: unknown dtype '{}'", path, row, name));
}

}  // namespace

std::vector<TimedCase> read_timings(const std::string& path) {
  const CsvRows csv(path);
  const std::size_t kernel = csv.column("kernel"), dtype = csv.column("dtype"),
                    us = csv.column("latency_us");
  struct Size {
    const char* name;
    std::int64_t Case::*field;
  };
  constexpr std::array kSizes{Size{"m", &Case::m},
                              Size{"n", &Case::n},
                              Size{"k", &Case::k},
                              Size{"batch", &Case::batch},
                              Size{"context", &Case::context},
                              Size{"heads", &Case::heads},
                              Size{"kv_heads", &Case::kv_heads},
                              Size{"head_dim", &Case::head_dim},
                              Size{"block_size", &Case::block_size},
                              Size{"bytes", &Case::bytes},
                              Size{"gpus", &Case::gpus}};
  std::vector<TimedCase> timings;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    TimedCase t;
    t.c.kernel = kernel_named(csv.text(i, kernel), path, i + 1);
    t.c.dtype = type_named(csv.text(i, dtype), path, i + 1);
    for (const Size& size : kSizes) {
      t.c.*size.field = static_cast<std::int64_t>(csv.number(i, csv.column(size.name), 0, kMost));
    }
    t.us = csv.number(i, us, kLeastUs, kMost);
    timings.push_back(t);
  }
  return timings;
}

Environment read_environment(const std::string& path) {
  const nlohmann::json json = read_json_file(path);
  if (!json.is_object() || !json.contains("backend") || !json.contains("units")) {
    throw InputError(path + ": not an environment that `calibrate measure` wrote");
  }
  Environment e;
  const auto text = [&](const char* key) { return json.value(key, std::string()); };
  const auto number = [&](const char* key) { return json.value(key, 0.0); };
  const auto maybe = [&](const char* key, std::optional<double>& to) {
    if (json.contains(key)) to = json.at(key).get<double>();
  };
  try {
    e.backend = text("backend");
    e.device = text("device");
    e.toolkit = text("toolkit");
    e.driver = text("driver");
    e.gemm_library = text("gemm_library");
    e.memory_bytes = number("memory_bytes");
    e.free_bytes = number("free_bytes");
    e.units = static_cast<std::int64_t>(number("units"));
    e.cache_bytes = number("cache_bytes");
    if (json.contains("ecc")) e.ecc = json.at("ecc").get<bool>();
    if (json.contains("mig")) e.mig = json.at("mig").get<bool>();
    maybe("clock_mhz", e.clock_mhz);
    maybe("max_clock_mhz", e.max_clock_mhz);
    maybe("power_limit_w", e.power_limit_w);
    maybe("utilisation", e.utilisation);
    for (const auto& reason : json.value("throttling", nlohmann::json::array())) {
      e.throttling.push_back(reason.get<std::string>());
    }
  } catch (const nlohmann::json::exception&) {
    throw InputError(path + ": a value is of another type than `calibrate measure` writes");
  }
  return e;
}

Sustained read_sustained(const std::string& path) {
  const CsvRows csv(path);
  const std::size_t at = csv.column("at_s"), us = csv.column("latency_us");
  std::vector<double> times, values;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    times.push_back(csv.number(i, at, 0, kMost));
    values.push_back(csv.number(i, us, kLeastUs, kMost));
  }
  return fit_sustained(times, values);
}

}  // namespace servesim::calibrate
