#include "hardware/hardware_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
constexpr double kLargestK = 1e6;
constexpr double kNeverHot = 1e12;
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

/// Sizes that a GEMM's correction tables may have.
constexpr std::array kCorrectionSizes{1,   4,   16,   32,   64,   96,   128,   160,   192,
                                      256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

std::vector<GemmCorrection> read_corrections(Params p) {
  std::vector<GemmCorrection> corrections;
  for (const int size : kCorrectionSizes) {
    const std::string key = std::to_string(size);
    if (p.has(key)) corrections.push_back({static_cast<double>(size), p.number(key, 0.5, 2)});
  }
  p.finish();
  return corrections;
}

GemmParameters read_gemm(Params p) {
  GemmParameters g;
  g.t0_us = time_us(p, "t0_us");
  g.per_4096_k_us = time_us(p, "per_4096_k_us");
  g.smoothness = smoothness(p);
  g.bandwidth_efficiency = efficiency(p, "bandwidth_efficiency");
  g.wave_weight = p.number("wave_weight", 0, 1);
  g.tile_overhead = p.number("tile_overhead", 0, kLargestRatio);
  g.fill_k = p.number("fill_k", 0, kLargestK);
  g.split_us = time_us(p, "split_us");
  g.split_traffic = p.number("split_traffic", 0, kLargestRatio);
  g.efficiency_cold = efficiency(p, "efficiency_cold");
  g.efficiency_hot = efficiency(p, "efficiency_hot");
  if (g.efficiency_hot > g.efficiency_cold) {
    throw p.error("efficiency_hot", "exceeds efficiency_cold: sustained compute is never faster");
  }
  if (p.has("quantize_us")) {
    g.quantize_us = time_us(p, "quantize_us");
    g.quantize_ps_per_element = p.number("quantize_ps_per_element", 0, kLongestUs);
  }
  if (p.has("benchmark_us")) g.benchmark_us = p.number("benchmark_us", kSmallest, kNeverHot);
  if (p.has("benchmark_heat")) g.benchmark_heat = p.number("benchmark_heat", 0, 1);
  if (p.has("tile_scale")) g.tile_scale = p.number("tile_scale", 1.0 / 64, 4);
  if (p.has("table")) g.corrections = read_corrections(p.child("table"));
  if (p.has("table_n")) g.n_corrections = read_corrections(p.child("table_n"));
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
  a.ramp_us = time_us(p, "ramp_us");
  a.ramp_bytes = p.number("ramp_bytes", 1, kLargestBytes);
  a.length_us = time_us(p, "length_us");
  a.length_tokens = p.number("length_tokens", 1, kLargestBytes);
  a.short_saving_us = p.number("short_saving_us", 0, a.t0_us);
  a.mha_head_factor = p.number("mha_head_factor", 0.01, 100);
  a.mha_bytes_factor = p.number("mha_bytes_factor", 0.01, 100);
  a.l2_bytes = p.number("l2_bytes", 1, kLargestBytes);
  a.l2_speedup = p.number("l2_speedup", 1, 1000);
  a.l2_sharpness = p.number("l2_sharpness", 0.1, 1000);
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
  a.bandwidth_efficiency = efficiency(p, "bandwidth_efficiency");
  a.packs_heads = p.required<bool>("packs_heads");
  if (p.has("benchmark_us")) a.benchmark_us = p.number("benchmark_us", kSmallest, kNeverHot);
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

AllReduceAlgorithm read_algorithm(Params p) {
  AllReduceAlgorithm a;
  a.latency_us = time_us(p, "latency_us");
  a.bytes_per_s = rate(p, "bytes_per_s");
  a.ramp_us = time_us(p, "ramp_us");
  a.ramp_bytes = p.number("ramp_bytes", 1, kLargestBytes);
  p.finish();
  return a;
}

std::map<std::int64_t, AllReduceParameters> read_all_reduce(Params p) {
  std::map<std::int64_t, AllReduceParameters> table;
  for (std::int64_t n = 2; n <= 1024; ++n) {
    const std::string key = fmt::format("{}_gpus", n);
    if (!p.has(key)) continue;
    Params row = p.child(key);
    AllReduceParameters& a = table[n];
    a.nccl = read_algorithm(row.child("nccl"));
    if (row.has("custom")) {
      a.custom = read_algorithm(row.child("custom"));
      a.custom_cap_bytes = row.number("custom_cap_bytes", 0, kLargestBytes);
    }
    row.finish();
  }
  p.finish();
  return table;
}

KernelSet read_kernel_set(Params& p) {
  KernelSet set;
  set.gemm = read_gemm(block(p, "gemm"));
  if (p.has("gemm_8bit")) set.gemm_8bit = read_gemm(block(p, "gemm_8bit"));
  set.decode_attention = read_decode_attention(block(p, "decode_attention"));
  if (p.has("decode_attention_8bit")) {
    set.decode_attention_8bit = read_decode_attention(block(p, "decode_attention_8bit"));
  }
  set.prefill_attention = read_prefill_attention(block(p, "prefill_attention"));
  if (p.has("prefill_attention_8bit")) {
    set.prefill_attention_8bit = read_prefill_attention(block(p, "prefill_attention_8bit"));
  }
  set.all_reduce = read_all_reduce(block(p, "all_reduce"));
  return set;
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
  if (pcie.has("efficiency")) spec.pcie_efficiency = efficiency(pcie, "efficiency");
  if (pcie.has("overlaps_compute")) {
    spec.pcie_overlaps_compute = pcie.required<bool>("overlaps_compute");
  }
  pcie.finish();
}

void read_kernels(Params& profile, HardwareSpec& spec) {
  spec.kernels = read_kernel_set(profile);
  if (!profile.has("tensorrt_llm")) return;
  Params other = block(profile, "tensorrt_llm");
  spec.tensorrt_llm = read_kernel_set(other);
  other.finish();
}

void read_engine(Params& profile, HardwareSpec& spec) {
  spec.elementwise = read_elementwise(block(profile, "elementwise"));
  Params sampling = block(profile, "sampling");
  spec.sampling_ns_per_logit = sampling.number("ns_per_logit", 0, 1e3);
  sampling.finish();
  Params heat = block(profile, "heat");
  spec.heat_time_constant_s = heat.number("time_constant_ms", kSmallest, 1e6) * 1e-3;
  heat.finish();
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

HardwareSpec hardware_without_kernels(const nlohmann::json& profile, const std::string& name,
                                      const std::string& origin) {
  Params params(profile, origin);
  HardwareSpec spec;
  spec.name = name;
  read_datasheet(params, spec);
  read_engine(params, spec);
  for (const std::string& key : kernel_block_names()) params.allow(key);
  params.finish();
  return spec;
}

std::vector<std::string> kernel_block_names() {
  return {"gemm",
          "gemm_8bit",
          "decode_attention",
          "decode_attention_8bit",
          "prefill_attention",
          "prefill_attention_8bit",
          "all_reduce",
          "tensorrt_llm"};
}

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
  std::string hash;
  const nlohmann::json profile = read_json_file(path.string(), hash);
  HardwareSpec spec = hardware_from_json(profile, path.stem().string(), path.string());
  spec.hash = std::move(hash);
  return spec;
}

}  // namespace servesim
