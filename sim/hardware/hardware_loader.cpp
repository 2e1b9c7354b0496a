#include "hardware/hardware_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/data_dir.hpp"
#include "core/params.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

constexpr double kLargestRate = 1e19;
constexpr double kLongestUs = 1e6;
constexpr double kLargestBytes = 1e15;
constexpr double kLargestRatio = 1e3;
constexpr double kSmallest = 1e-9;

/// Opens block `key` and checks that its numbers say where they come from.
Params block(Params& profile, const std::string& key) {
  Params child = profile.child(key);
  if (child.required<std::string>("source").empty()) throw child.error("source", "is empty");
  const auto kind = child.required<std::string>("kind");
  if (kind != "datasheet" && kind != "measured" && kind != "fitted" && kind != "assumed") {
    throw child.error(
        "kind", unknown_name("kind", kind, {"assumed", "datasheet", "fitted", "measured"}).what());
  }
  return child;
}

double rate(Params& p, const std::string& key) {
  return p.number(key, 1, kLargestRate);
}
double time_us(Params& p, const std::string& key) {
  return p.number(key, 0, kLongestUs);
}
double efficiency(Params& p, const std::string& key) {
  return p.number(key, 0.01, 1);
}
double smoothness(Params& p) {
  return p.number("smoothness", 1, 20);
}

std::optional<double> optional_rate(Params& p, const std::string& key) {
  if (!p.has(key)) return std::nullopt;
  return rate(p, key);
}

GemmParameters read_gemm(Params p) {
  GemmParameters g;
  g.t0_us = time_us(p, "t0_us");
  g.per_4096_k_us = time_us(p, "per_4096_k_us");
  g.smoothness = smoothness(p);
  g.bandwidth_efficiency = efficiency(p, "bandwidth_efficiency");
  g.wave_weight = p.number("wave_weight", 0, 1);
  g.tile_overhead = p.number("tile_overhead", 0, kLargestRatio);
  g.efficiency_cold = efficiency(p, "efficiency_cold");
  g.efficiency_hot = efficiency(p, "efficiency_hot");
  if (g.efficiency_hot > g.efficiency_cold) {
    throw p.error("efficiency_hot", "exceeds efficiency_cold: sustained compute is never faster");
  }
  p.finish();
  return g;
}

DecodeAttentionParameters read_decode_attention(Params p) {
  DecodeAttentionParameters a;
  a.t0_us = time_us(p, "t0_us");
  a.per_head_us = time_us(p, "per_head_us");
  a.free_heads_per_sm = p.number("free_heads_per_sm", 0, kLargestRatio);
  a.smoothness = smoothness(p);
  a.bandwidth_efficiency = efficiency(p, "bandwidth_efficiency");
  p.finish();
  return a;
}

PrefillAttentionParameters read_prefill_attention(Params p) {
  PrefillAttentionParameters a;
  a.t0_us = time_us(p, "t0_us");
  a.tile_us = p.number("tile_us", kSmallest, kLongestUs);
  a.tile_overhead = p.number("tile_overhead", 0, kLargestRatio);
  a.smoothness = smoothness(p);
  a.longest_weight = p.number("longest_weight", 0, kLargestRatio);
  a.hot_factor = p.number("hot_factor", 1, 10);
  p.finish();
  return a;
}

ElementwiseParameters read_elementwise(Params p) {
  ElementwiseParameters e;
  e.kernel_us = time_us(p, "kernel_us");
  e.bandwidth_efficiency = efficiency(p, "bandwidth_efficiency");
  e.kernels_per_layer = p.number("kernels_per_layer", 0, kLargestRatio);
  p.finish();
  return e;
}

std::map<std::int64_t, AllReduceParameters> read_all_reduce(Params p) {
  std::map<std::int64_t, AllReduceParameters> table;
  for (std::int64_t n = 2; n <= 1024; ++n) {
    const std::string key = fmt::format("{}_gpus", n);
    if (!p.has(key)) continue;
    Params row = p.child(key);
    AllReduceParameters& a = table[n];
    a.small_latency_us = time_us(row, "small_latency_us");
    a.small_bytes_per_s = rate(row, "small_bytes_per_s");
    a.large_latency_us = time_us(row, "large_latency_us");
    a.large_bytes_per_s = rate(row, "large_bytes_per_s");
    row.finish();
  }
  p.finish();
  return table;
}

void read_datasheet(Params& profile, HardwareSpec& spec) {
  Params memory = block(profile, "memory");
  spec.memory_bytes = memory.number("bytes", 1, kLargestBytes);
  memory.finish();
  Params hbm = block(profile, "hbm");
  spec.hbm_bytes_per_s = rate(hbm, "bytes_per_s");
  hbm.finish();
  Params compute = block(profile, "compute");
  spec.sms = compute.integer("sms", 1, 100'000);
  spec.bf16_flops = rate(compute, "bf16_flops_per_s");
  spec.fp8_flops = optional_rate(compute, "fp8_flops_per_s");
  spec.int8_flops = optional_rate(compute, "int8_flops_per_s");
  compute.finish();
  if (profile.has("nvlink")) {
    Params nvlink = block(profile, "nvlink");
    spec.nvlink_bytes_per_s = rate(nvlink, "bytes_per_s_per_direction");
    nvlink.finish();
  }
  Params pcie = block(profile, "pcie");
  spec.pcie_bytes_per_s = rate(pcie, "bytes_per_s_per_direction");
  pcie.finish();
}

void read_kernels(Params& profile, HardwareSpec& spec) {
  spec.gemm = read_gemm(block(profile, "gemm"));
  if (profile.has("gemm_8bit")) spec.gemm_8bit = read_gemm(block(profile, "gemm_8bit"));
  spec.decode_attention = read_decode_attention(block(profile, "decode_attention"));
  if (profile.has("decode_attention_8bit")) {
    spec.decode_attention_8bit = read_decode_attention(block(profile, "decode_attention_8bit"));
  }
  spec.prefill_attention = read_prefill_attention(block(profile, "prefill_attention"));
  spec.elementwise = read_elementwise(block(profile, "elementwise"));
  spec.all_reduce = read_all_reduce(block(profile, "all_reduce"));
  Params sampling = block(profile, "sampling");
  spec.sampling_ns_per_logit = sampling.number("ns_per_logit", 0, 1e3);
  sampling.finish();
  Params heat = block(profile, "heat");
  spec.heat_time_constant_s = heat.number("time_constant_ms", kSmallest, 1e6) * 1e-3;
  heat.finish();
}

void read_engine(Params& profile, HardwareSpec& spec) {
  Params host = block(profile, "host");
  spec.host.step_ms = host.number("step_ms", 0, 1e4);
  spec.host.front_end_before_ms = host.number("front_end_before_ms", 0, 1e4);
  spec.host.front_end_after_ms = host.number("front_end_after_ms", 0, 1e4);
  host.finish();
  Params overhead = block(profile, "memory_overhead");
  spec.context_bytes = overhead.number("context_bytes", 0, kLargestBytes);
  spec.collective_bytes = overhead.number("collective_bytes", 0, kLargestBytes);
  overhead.finish();
}

}  // namespace

HardwareSpec hardware_from_json(const nlohmann::json& profile, const std::string& name,
                                const std::string& origin) {
  Params params(profile, origin);
  HardwareSpec spec;
  spec.name = name;
  read_datasheet(params, spec);
  read_kernels(params, spec);
  read_engine(params, spec);
  params.finish();
  return spec;
}

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  const fs::path folder = fs::path(data_dir()) / "models" / "hardware";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

HardwareSpec load_hardware(const std::string& name_or_path) {
  const std::vector<std::string> names = hardware_names();
  fs::path path(name_or_path);
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) {
    path = fs::path(data_dir()) / "models" / "hardware" / (name_or_path + ".json");
  } else if (std::error_code ignored; path.extension() != ".json" && !fs::exists(path, ignored)) {
    throw unknown_name("hardware", name_or_path, names);
  }
  return hardware_from_json(read_json_file(path.string()), path.stem().string(), path.string());
}

}  // namespace servesim
