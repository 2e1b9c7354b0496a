#include "cost/measured_kernels.hpp"

#include <algorithm>
#include <optional>

#include "cost/csv_rows.hpp"
#include "cost/kernels.hpp"

namespace servesim {
namespace {

constexpr double kMostUs = 1e9;
constexpr double kMostSize = 1e9;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool begins_with(const std::string& text, const std::string& prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

std::optional<MeasuredEngine> engine_of(const std::string& name) {
  if (begins_with(name, "calibrate")) return MeasuredEngine::kVllm;  // a profile's default kernels
  if (begins_with(name, "vllm")) return MeasuredEngine::kVllm;
  if (begins_with(name, "trtllm")) return MeasuredEngine::kTensorRtLlm;
  return std::nullopt;
}

/// Whether a type takes one byte; nothing for types that are not modelled.
std::optional<bool> is_8bit(const std::string& type) {
  if (type == "fp8" || type == "int8") return true;
  if (type == "bfloat16" || type == "float16" || type == "half") return false;
  return std::nullopt;
}

double heat_after(double us, double benchmark_us) {
  return us / (us + benchmark_us);
}

KernelFamily family_of(MeasuredEngine engine) {
  return engine == MeasuredEngine::kTensorRtLlm ? KernelFamily::kTensorRtLlm : KernelFamily::kVllm;
}

MachineRates rates_for(const HardwareSpec& hardware, bool eight_bit) {
  return machine_rates(
      hardware, eight_bit ? hardware.fp8_flops.value_or(hardware.bf16_flops) : hardware.bf16_flops);
}

}  // namespace

std::vector<MeasuredGemm> read_gemms(const std::string& path, const std::string& gpu) {
  const CsvRows csv(path);
  const std::size_t gpu_at = csv.column("gpu"), engine_at = csv.column("engine"),
                    type_at = csv.column("dtype"), m = csv.column("m"), n = csv.column("n"),
                    k = csv.column("k"), us = csv.column("latency_us");
  std::vector<MeasuredGemm> rows;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const auto engine = engine_of(csv.text(i, engine_at));
    const auto eight = is_8bit(csv.text(i, type_at));
    if (!begins_with(csv.text(i, gpu_at), gpu) || !engine || !eight) continue;
    rows.push_back({*engine, *eight,
                    GemmShape{csv.number(i, m, 1, kMostSize), csv.number(i, n, 1, kMostSize),
                              csv.number(i, k, 1, kMostSize)},
                    csv.number(i, us, 1e-3, kMostUs), csv.text(i, type_at) == "int8"});
  }
  return rows;
}

std::vector<MeasuredDecode> read_decodes(const std::string& path, const std::string& gpu) {
  const CsvRows csv(path);
  const std::size_t gpu_at = csv.column("gpu"), engine_at = csv.column("engine"),
                    type_at = csv.column("kv_dtype"), batch = csv.column("batch"),
                    context = csv.column("ctx"), heads = csv.column("heads"),
                    kv_heads = csv.column("kv_heads"), head_dim = csv.column("head_dim"),
                    us = csv.column("latency_us");
  std::vector<MeasuredDecode> rows;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const auto engine = engine_of(csv.text(i, engine_at));
    const auto eight = is_8bit(csv.text(i, type_at));
    if (!begins_with(csv.text(i, gpu_at), gpu) || !engine || !eight) continue;
    rows.push_back({*engine, *eight, csv.number(i, batch, 1, kMostSize),
                    csv.number(i, context, 0, kMostSize), csv.number(i, heads, 1, kMostSize),
                    csv.number(i, kv_heads, 1, kMostSize), csv.number(i, head_dim, 1, kMostSize),
                    csv.number(i, us, 1e-3, kMostUs)});
  }
  return rows;
}

std::vector<MeasuredPrefill> read_prefills(const std::string& path, const std::string& gpu) {
  const CsvRows csv(path);
  const std::size_t gpu_at = csv.column("gpu"), engine_at = csv.column("engine"),
                    type_at = csv.column("kv_dtype"), batch = csv.column("batch"),
                    tokens = csv.column("isl"), past = csv.column("past_tokens"),
                    heads = csv.column("heads"), kv_heads = csv.column("kv_heads"),
                    head_dim = csv.column("head_dim"), us = csv.column("latency_us");
  std::vector<MeasuredPrefill> rows;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const auto engine = engine_of(csv.text(i, engine_at));
    const auto eight = is_8bit(csv.text(i, type_at));
    if (!begins_with(csv.text(i, gpu_at), gpu) || !engine || !eight) continue;
    rows.push_back({*engine, *eight, csv.number(i, batch, 1, kMostSize),
                    csv.number(i, tokens, 1, kMostSize),
                    csv.optional_number(i, past, 0, kMostSize).value_or(0),
                    csv.number(i, heads, 1, kMostSize), csv.number(i, kv_heads, 1, kMostSize),
                    csv.number(i, head_dim, 1, kMostSize), csv.number(i, us, 1e-3, kMostUs)});
  }
  return rows;
}

std::vector<MeasuredAllReduce> read_all_reduces(const std::string& path, const std::string& gpu) {
  const CsvRows csv(path);
  const std::size_t gpu_at = csv.column("gpu"), impl = csv.column("impl"), op = csv.column("op"),
                    type_at = csv.column("dtype"), gpus = csv.column("n_gpus"),
                    bytes = csv.column("bytes"), us = csv.column("latency_us");
  std::vector<MeasuredAllReduce> rows;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const std::string& name = csv.text(i, impl);
    if (!begins_with(csv.text(i, gpu_at), gpu) || csv.text(i, op) != "all_reduce") continue;
    std::optional<MeasuredEngine> engine;
    if (begins_with(name, "vllm_custom_graph")) engine = MeasuredEngine::kVllm;
    if (begins_with(name, "trtllm")) engine = MeasuredEngine::kTensorRtLlm;
    if (begins_with(name, "NCCL 2") && csv.text(i, type_at) == "half") {
      engine = MeasuredEngine::kNccl;
    }
    if (!engine) continue;
    rows.push_back({*engine, static_cast<std::int64_t>(csv.number(i, gpus, 2, 1024)),
                    csv.number(i, bytes, 1, 1e12), csv.number(i, us, 1e-3, kMostUs)});
  }
  return rows;
}

double predict_us(const GemmParameters& p, const MachineRates& machine, const MeasuredGemm& row) {
  const GemmShape& s = row.shape;
  const double element = row.eight_bit ? 1 : 2;
  const double bytes = (s.n * s.k + s.m * s.k) * element + 2 * s.m * s.n;
  const double memory_us = bytes / (p.bandwidth_efficiency * machine.hbm_bytes_per_us);
  const double heat =
      p.benchmark_heat * heat_after(2 * s.m * s.n * s.k / machine.flop_per_us, p.benchmark_us);
  const GemmLimits limits = gemm_limits(p, machine, s, memory_us, heat, ExactMax{p.smoothness});
  double us = limits.total_us() * gemm_correction(p, s.m, s.n);
  if (row.eight_bit) us += quantize_us(p, s.m, s.k);
  return us;
}

double predict_us(const DecodeAttentionParameters& p, const MachineRates& machine,
                  const MeasuredDecode& row) {
  const double bytes =
      2 * row.batch * row.context * row.kv_heads * row.head_dim * (row.eight_bit_kv ? 1 : 2);
  return decode_attention_us(p, machine, {row.batch, row.context, row.q_heads, row.kv_heads, bytes},
                             benchmark_l2_share(p, bytes), ExactMax{p.smoothness});
}

double predict_us(const PrefillAttentionParameters& p, const MachineRates& machine,
                  const MeasuredPrefill& row) {
  PrefillAttentionWork work;
  const double reach = row.tokens + row.past;
  work.add(p, row.tokens, row.past + row.tokens / 2, reach, row.q_heads, row.kv_heads);
  work.tiles *= row.batch;
  work.bytes =
      row.batch * row.head_dim *
      (4 * row.tokens * row.q_heads + 2 * reach * row.kv_heads * (row.eight_bit_kv ? 1 : 2));
  const double heat = heat_after(work.tiles * p.tile_us / machine.sms, p.benchmark_us);
  return prefill_attention_limits(p, machine, work, head_dim_factor(row.head_dim), heat,
                                  ExactMax{p.smoothness})
      .total_us;
}

double predict_us(const HardwareSpec& hardware, const MeasuredGemm& row) {
  const KernelSet& set = hardware.kernels_of(family_of(row.engine));
  return predict_us(row.eight_bit ? set.gemm_8bit.value_or(set.gemm) : set.gemm,
                    rates_for(hardware, row.eight_bit), row);
}

double predict_us(const HardwareSpec& hardware, const MeasuredDecode& row) {
  const KernelSet& set = hardware.kernels_of(family_of(row.engine));
  return predict_us(row.eight_bit_kv ? set.decode_attention_8bit.value_or(set.decode_attention)
                                     : set.decode_attention,
                    rates_for(hardware, false), row);
}

double predict_us(const HardwareSpec& hardware, const MeasuredPrefill& row) {
  if (is_decode(row)) return predict_us(hardware, as_decode(row));
  const KernelSet& set = hardware.kernels_of(family_of(row.engine));
  return predict_us(row.eight_bit_kv ? set.prefill_attention_8bit.value_or(set.prefill_attention)
                                     : set.prefill_attention,
                    rates_for(hardware, false), row);
}

double predict_us(const HardwareSpec& hardware, const MeasuredAllReduce& row) {
  const AllReduceParameters& p = hardware.all_reduce_for(row.gpus, family_of(row.engine));
  if (row.engine == MeasuredEngine::kNccl) return all_reduce_us(p.nccl, row.bytes);
  return all_reduce_us(p, row.bytes);
}

MeasuredDecode as_decode(const MeasuredPrefill& row) {
  return {row.engine,  row.eight_bit_kv, row.batch,    row.past + 1,
          row.q_heads, row.kv_heads,     row.head_dim, row.us};
}

}  // namespace servesim
