#include "profile_json.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace servesim::calibrate {
namespace {

using Json = nlohmann::ordered_json;

/// Five significant digits: finer than the fits are good for.
double rounded(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

Json to_json(const GemmParameters& p) {
  Json j;
  j["t0_us"] = rounded(p.t0_us);
  j["per_4096_k_us"] = rounded(p.per_4096_k_us);
  j["smoothness"] = rounded(p.smoothness);
  j["bandwidth_efficiency"] = rounded(p.bandwidth_efficiency);
  j["wave_weight"] = rounded(p.wave_weight);
  j["tile_overhead"] = rounded(p.tile_overhead);
  j["fill_k"] = rounded(p.fill_k);
  j["split_us"] = rounded(p.split_us);
  j["split_traffic"] = rounded(p.split_traffic);
  j["efficiency_cold"] = rounded(p.efficiency_cold);
  j["efficiency_hot"] = rounded(p.efficiency_hot);
  if (p.quantize_us > 0) {
    j["quantize_us"] = rounded(p.quantize_us);
    j["quantize_ps_per_element"] = rounded(p.quantize_ps_per_element);
  }
  j["benchmark_us"] = rounded(p.benchmark_us);
  j["benchmark_heat"] = rounded(p.benchmark_heat);
  if (p.tile_scale != 1) j["tile_scale"] = p.tile_scale;
  for (const GemmCorrection& c : p.corrections) {
    j["table"][fmt::format("{:.0f}", c.size)] = rounded(c.factor);
  }
  for (const GemmCorrection& c : p.n_corrections) {
    j["table_n"][fmt::format("{:.0f}", c.size)] = rounded(c.factor);
  }
  return j;
}

Json to_json(const DecodeAttentionParameters& p) {
  Json j;
  j["t0_us"] = rounded(p.t0_us);
  j["per_head_us"] = rounded(p.per_head_us);
  j["free_heads_per_sm"] = rounded(p.free_heads_per_sm);
  j["smoothness"] = rounded(p.smoothness);
  j["bandwidth_efficiency"] = rounded(p.bandwidth_efficiency);
  j["ramp_us"] = rounded(p.ramp_us);
  j["ramp_bytes"] = rounded(p.ramp_bytes);
  j["length_us"] = rounded(p.length_us);
  j["length_tokens"] = rounded(p.length_tokens);
  j["short_saving_us"] = rounded(p.short_saving_us);
  j["mha_head_factor"] = rounded(p.mha_head_factor);
  j["mha_bytes_factor"] = rounded(p.mha_bytes_factor);
  j["l2_bytes"] = rounded(p.l2_bytes);
  j["l2_speedup"] = rounded(p.l2_speedup);
  j["l2_sharpness"] = rounded(p.l2_sharpness);
  return j;
}

Json to_json(const PrefillAttentionParameters& p) {
  Json j;
  j["t0_us"] = rounded(p.t0_us);
  j["tile_us"] = rounded(p.tile_us);
  j["tile_overhead"] = rounded(p.tile_overhead);
  j["smoothness"] = rounded(p.smoothness);
  j["longest_weight"] = rounded(p.longest_weight);
  j["hot_factor"] = rounded(p.hot_factor);
  j["bandwidth_efficiency"] = rounded(p.bandwidth_efficiency);
  j["packs_heads"] = p.packs_heads;
  j["benchmark_us"] = rounded(p.benchmark_us);
  return j;
}

Json to_json(const AllReduceAlgorithm& a) {
  Json j;
  j["latency_us"] = rounded(a.latency_us);
  j["bytes_per_s"] = rounded(a.bytes_per_s);
  j["ramp_us"] = rounded(a.ramp_us);
  j["ramp_bytes"] = rounded(a.ramp_bytes);
  return j;
}

Json to_json(const std::map<std::int64_t, AllReduceParameters>& table) {
  Json j = Json::object();
  for (const auto& [gpus, p] : table) {
    Json& row = j[fmt::format("{}_gpus", gpus)];
    if (p.custom_cap_bytes > 0) {
      row["custom"] = to_json(p.custom);
      row["custom_cap_bytes"] = p.custom_cap_bytes;
    }
    row["nccl"] = to_json(p.nccl);
  }
  return j;
}

}  // namespace

Json kernel_blocks(const KernelSet& set,
                   const std::function<Provenance(const std::string&)>& provenance) {
  Json blocks;
  const auto add = [&](const std::string& name, Json block) {
    const Provenance from = provenance(name);
    block["source"] = from.source;
    block["kind"] = from.kind;
    blocks[name] = std::move(block);
  };
  add("gemm", to_json(set.gemm));
  if (set.gemm_8bit) add("gemm_8bit", to_json(*set.gemm_8bit));
  add("decode_attention", to_json(set.decode_attention));
  if (set.decode_attention_8bit) add("decode_attention_8bit", to_json(*set.decode_attention_8bit));
  add("prefill_attention", to_json(set.prefill_attention));
  if (set.prefill_attention_8bit) {
    add("prefill_attention_8bit", to_json(*set.prefill_attention_8bit));
  }
  add("all_reduce", to_json(set.all_reduce));
  return blocks;
}

}  // namespace servesim::calibrate
