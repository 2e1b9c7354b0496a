#include "profile_json.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <initializer_list>

namespace servesim::calibrate {
namespace {

using Json = nlohmann::ordered_json;

/// A number of a kernel's parameters, under the name that it has in profiles.
template <class Parameters>
struct NamedNumber {
  const char* name;
  double Parameters::*number;
};

template <class Parameters>
void add(Json& json, const Parameters& p, std::initializer_list<NamedNumber<Parameters>> numbers) {
  for (const auto& [name, number] : numbers) json[name] = rounded(p.*number);
}

void add_table(Json& json, const char* name, const std::vector<GemmCorrection>& table) {
  for (const GemmCorrection& c : table) {
    json[name][fmt::format("{:.0f}", c.size)] = rounded(c.factor);
  }
}

Json to_json(const GemmParameters& p) {
  using P = GemmParameters;
  Json j;
  add<P>(j, p,
         {{"t0_us", &P::t0_us},
          {"per_4096_k_us", &P::per_4096_k_us},
          {"smoothness", &P::smoothness},
          {"bandwidth_efficiency", &P::bandwidth_efficiency},
          {"wave_weight", &P::wave_weight},
          {"tile_overhead", &P::tile_overhead},
          {"fill_k", &P::fill_k},
          {"split_us", &P::split_us},
          {"split_traffic", &P::split_traffic},
          {"efficiency_cold", &P::efficiency_cold},
          {"efficiency_hot", &P::efficiency_hot}});
  if (p.quantize_us > 0) {
    add<P>(j, p,
           {{"quantize_us", &P::quantize_us},
            {"quantize_ps_per_element", &P::quantize_ps_per_element}});
  }
  add<P>(j, p, {{"benchmark_us", &P::benchmark_us}, {"benchmark_heat", &P::benchmark_heat}});
  if (p.tile_scale != 1) j["tile_scale"] = p.tile_scale;
  add_table(j, "table", p.corrections);
  add_table(j, "table_n", p.n_corrections);
  return j;
}

Json to_json(const DecodeAttentionParameters& p) {
  using P = DecodeAttentionParameters;
  Json j;
  add<P>(j, p,
         {{"t0_us", &P::t0_us},
          {"per_head_us", &P::per_head_us},
          {"free_heads_per_sm", &P::free_heads_per_sm},
          {"smoothness", &P::smoothness},
          {"bandwidth_efficiency", &P::bandwidth_efficiency},
          {"ramp_us", &P::ramp_us},
          {"ramp_bytes", &P::ramp_bytes},
          {"length_us", &P::length_us},
          {"length_tokens", &P::length_tokens},
          {"short_saving_us", &P::short_saving_us},
          {"mha_head_factor", &P::mha_head_factor},
          {"mha_bytes_factor", &P::mha_bytes_factor},
          {"l2_bytes", &P::l2_bytes},
          {"l2_speedup", &P::l2_speedup},
          {"l2_sharpness", &P::l2_sharpness}});
  return j;
}

Json to_json(const PrefillAttentionParameters& p) {
  using P = PrefillAttentionParameters;
  Json j;
  add<P>(j, p,
         {{"t0_us", &P::t0_us},
          {"tile_us", &P::tile_us},
          {"tile_overhead", &P::tile_overhead},
          {"smoothness", &P::smoothness},
          {"longest_weight", &P::longest_weight},
          {"hot_factor", &P::hot_factor},
          {"bandwidth_efficiency", &P::bandwidth_efficiency}});
  j["packs_heads"] = p.packs_heads;
  add<P>(j, p, {{"benchmark_us", &P::benchmark_us}});
  return j;
}

Json to_json(const AllReduceAlgorithm& a) {
  using P = AllReduceAlgorithm;
  Json j;
  add<P>(j, a,
         {{"latency_us", &P::latency_us},
          {"bytes_per_s", &P::bytes_per_s},
          {"ramp_us", &P::ramp_us},
          {"ramp_bytes", &P::ramp_bytes}});
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

double rounded(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

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
