#include "fit_forms.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <utility>

#include "parameter_map.hpp"

namespace servesim::calibrate {
namespace {

constexpr double kNeverHot = 1e12;  ///< microseconds of compute until a burst is half hot: never
constexpr std::array kTableRows{1.0,   4.0,   16.0,  32.0,   64.0,   96.0,   128.0,  160.0,
                                192.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0};

double start_of(double value) {
  return std::log(value);
}

/// Columns of its table by n, an octave apart.
constexpr std::array kTableColumns{1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0};

/// True for about a quarter of all sizes: a SplitMix64 hash of the whole numbers.
bool quarter(std::initializer_list<double> sizes) {
  std::uint64_t hash = 0;
  for (const double size : sizes) {
    hash += static_cast<std::uint64_t>(size) + 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
    hash ^= hash >> 31;
  }
  return hash % 4 == 0;
}

GemmParameters read_gemm(Variables& v, const Benchmark& benchmark) {
  GemmParameters p;
  p.t0_us = v.positive();
  p.per_4096_k_us = v.positive();
  p.smoothness = v.between(1, 10);
  p.bandwidth_efficiency = v.between(benchmark.lowest_efficiency, 1);
  p.wave_weight = v.between(0, 1);
  p.tile_overhead = v.positive();
  p.fill_k = v.positive();
  p.split_us = v.positive();
  p.split_traffic = v.positive();
  p.efficiency_cold = v.between(benchmark.lowest_efficiency, 1);
  p.tile_scale = benchmark.tile_scale;
  return p;
}

std::vector<double> gemm_start(const Benchmark& benchmark) {
  const double lowest = benchmark.lowest_efficiency;
  return {start_of(2.5),
          start_of(0.5),
          between_variable(3, 1, 10),
          between_variable(0.87, lowest, 1),
          between_variable(0.5, 0, 1),
          start_of(3 * benchmark.tile_scale),
          start_of(150 * benchmark.tile_scale),
          start_of(2),
          start_of(0.3),
          between_variable(0.9, lowest, 1)};
}

/// How much sustained compute slows 16-bit GEMMs, and how hot each benchmark ran.
void read_heating(Variables& v, const Benchmark& benchmark, GemmPair& pair) {
  pair.vllm.efficiency_hot = pair.vllm.efficiency_cold * v.between(0.6, 1);
  pair.tensorrt_llm.efficiency_hot = pair.vllm.efficiency_hot;
  pair.vllm.benchmark_us = v.positive();
  pair.tensorrt_llm.benchmark_us = v.positive();
  // vLLM's benchmark is taken to reach the sustained state: its long kernels are the slower ones.
  pair.tensorrt_llm.benchmark_heat = v.between(0.2, 1);
  if (!benchmark.own) return;
  pair.vllm.efficiency_hot = pair.vllm.efficiency_cold * benchmark.sustained_ratio;
  pair.vllm.benchmark_us = kNeverHot;
}

/// Each engine's quantisation; heating is that of the 16-bit fit.
void read_quantisation(Variables& v, const GemmPair& plain, GemmPair& pair) {
  pair.tensorrt_llm.benchmark_heat = plain.tensorrt_llm.benchmark_heat;
  for (const auto& [p, of] :
       {std::pair{&pair.vllm, &plain.vllm}, std::pair{&pair.tensorrt_llm, &plain.tensorrt_llm}}) {
    p->efficiency_hot = p->efficiency_cold * plain.vllm.efficiency_hot / plain.vllm.efficiency_cold;
    p->benchmark_us = of->benchmark_us;
    p->quantize_us = v.positive();
    p->quantize_ps_per_element = v.positive();
  }
}

/// The nearest table that never falls (pool adjacent violators), so that more rows never cost less.
void make_rising(std::vector<GemmCorrection>& table, const std::vector<double>& weights) {
  struct Block {
    double sum, weight;
    std::size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < table.size(); ++i) {
    blocks.push_back({table[i].factor * weights[i], weights[i], 1});
    while (blocks.size() > 1 && blocks.back().mean() < blocks[blocks.size() - 2].mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().weight += last.weight;
      blocks.back().count += last.count;
    }
  }
  std::size_t at = 0;
  for (const Block& block : blocks) {
    for (std::size_t i = 0; i < block.count; ++i) table[at++].factor = block.mean();
  }
}

/// A correction table, and how many rows stand behind each of its entries.
struct WeighedTable {
  std::vector<GemmCorrection> entries;  ///< factors as logarithms
  std::vector<double> weights;
};

/// Rows measured against the form, shared out to the nearest entries by the logarithm of their size
/// and pulled towards no correction where there are few.
template <class Size, class Predict>
WeighedTable correction_table(const std::vector<MeasuredGemm>& rows, MeasuredEngine engine,
                              std::span<const double> sizes, Size size_of, Predict log_ratio) {
  constexpr double kPull = 3;
  WeighedTable table;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    double sum = 0;
    double weight = kPull;
    const double here = std::log(sizes[i]);
    const double left = i > 0 ? std::log(sizes[i - 1]) : -1e9;
    const double right = i + 1 < sizes.size() ? std::log(sizes[i + 1]) : 1e9;
    for (const MeasuredGemm& row : rows) {
      if (row.engine != engine) continue;
      const double at = std::log(size_of(row));
      const double near = at < here ? (at - left) / (here - left) : (right - at) / (right - here);
      if (near <= 0) continue;
      sum += near * log_ratio(row);
      weight += near;
    }
    table.entries.push_back({sizes[i], sum / weight});
    table.weights.push_back(weight);
  }
  return table;
}

std::vector<GemmCorrection> factors(std::vector<GemmCorrection> logarithms) {
  for (GemmCorrection& c : logarithms) c.factor = std::exp(c.factor);
  return logarithms;
}

/// The tables of one engine, by m and perhaps by n on top of it: their libraries choose other tiles
/// for the same shape.
void add_tables(GemmPair& pair, const MachineRates& machine, const std::vector<MeasuredGemm>& rows,
                MeasuredEngine engine, bool by_n) {
  GemmParameters& p = engine == MeasuredEngine::kVllm ? pair.vllm : pair.tensorrt_llm;
  p.corrections.clear();
  p.n_corrections.clear();
  const GemmParameters form = p;
  const auto log_ratio = [&](const MeasuredGemm& row) {
    const double quantize = row.eight_bit ? quantize_us(form, row.shape.m, row.shape.k) : 0;
    const double us = predict_us(form, machine, row) - quantize;
    return std::log(std::max(row.us - quantize, 0.5 * us) / us);
  };
  const auto m_of = [](const MeasuredGemm& row) { return row.shape.m; };
  const auto n_of = [](const MeasuredGemm& row) { return row.shape.n; };
  WeighedTable by_m = correction_table(rows, engine, kTableRows, m_of, log_ratio);
  make_rising(by_m.entries, by_m.weights);
  p.corrections = factors(by_m.entries);
  if (!by_n) return;
  const auto left_over = [&](const MeasuredGemm& row) {
    return log_ratio(row) - std::log(correction_at(p.corrections, row.shape.m));
  };
  p.n_corrections = factors(correction_table(rows, engine, kTableColumns, n_of, left_over).entries);
}

void add_tables(GemmPair& pair, const MachineRates& machine, const std::vector<MeasuredGemm>& rows,
                bool by_n) {
  add_tables(pair, machine, rows, MeasuredEngine::kVllm, by_n);
  add_tables(pair, machine, rows, MeasuredEngine::kTensorRtLlm, by_n);
}

}  // namespace

std::vector<double> GemmForm::start() const {
  std::vector<double> point = gemm_start(benchmark);
  if (plain) {
    point.insert(point.end(), {start_of(1), start_of(2), start_of(7), start_of(2)});
  } else {
    point.insert(point.end(), {between_variable(0.9, 0.6, 1), start_of(140), start_of(35),
                               between_variable(0.8, 0.2, 1)});
  }
  return point;
}

GemmPair GemmForm::parameters(const std::vector<double>& point) const {
  Variables v(point);
  const GemmParameters shared = read_gemm(v, benchmark);
  GemmPair pair{shared, shared};
  if (plain) {
    read_quantisation(v, *plain, pair);
  } else {
    read_heating(v, benchmark, pair);
  }
  return pair;
}

Fitted<GemmPair> GemmForm::fit(const std::vector<MeasuredGemm>& rows,
                               const std::vector<double>& start, int restarts, int steps) const {
  const auto point = fit_point(*this, rows, start, restarts, steps);
  GemmPair pair = parameters(point);
  if (with_table) add_tables(pair, machine, rows, table_by_n);
  return {point, pair};
}

std::vector<double> DecodeForm::start() const {
  return {start_of(12),
          start_of(3.7),
          start_of(0.6),
          between_variable(1.6, 1, 6),
          between_variable(0.93, benchmark.lowest_efficiency, 1),
          start_of(4),
          start_of(14e6) - 17,
          start_of(3),
          start_of(1100) - 7,
          between_variable(0.05, 0, 0.6),
          0,
          0,
          start_of(45e6) - 17,
          start_of(1),
          start_of(15)};
}

DecodeAttentionParameters DecodeForm::parameters(const std::vector<double>& point) const {
  Variables v(point);
  DecodeAttentionParameters p;
  p.t0_us = v.positive();
  p.per_head_us = v.positive();
  p.free_heads_per_sm = v.positive();
  p.smoothness = v.between(1, 6);
  p.bandwidth_efficiency = v.between(benchmark.lowest_efficiency, 1);
  p.ramp_us = v.positive();
  p.ramp_bytes = v.positive() * std::exp(17);
  p.length_us = v.positive();
  p.length_tokens = v.positive() * std::exp(7);
  p.short_saving_us = p.t0_us * v.between(0, 0.6);
  p.mha_head_factor = v.positive();
  p.mha_bytes_factor = v.positive();
  p.l2_bytes = v.positive() * std::exp(17);
  p.l2_speedup = 1 + v.positive();
  p.l2_sharpness = v.positive();
  if (benchmark.own) {  // nothing is found in L2
    p.l2_bytes = p.l2_speedup = 1;
    p.l2_sharpness = 10;
  }
  return p;
}

Fitted<DecodeAttentionParameters> DecodeForm::fit(const std::vector<MeasuredDecode>& rows,
                                                  const std::vector<double>& start, int restarts,
                                                  int steps) const {
  const auto point = fit_point(*this, rows, start, restarts, steps);
  DecodeAttentionParameters p = parameters(point);
  const bool has_mha = std::any_of(rows.begin(), rows.end(), [](const MeasuredDecode& r) {
    return is_mha(r.q_heads, r.kv_heads);
  });
  if (!has_mha) p.mha_head_factor = p.mha_bytes_factor = 1;
  return {point, p};
}

std::vector<double> PrefillForm::start() const {
  return {start_of(9),
          start_of(1.7),
          start_of(2),
          between_variable(1.7, 1, 6),
          start_of(0.8),
          between_variable(1.08, 1, 1.3),
          between_variable(0.7, 0.2, 1),
          between_variable(2, 0, 4)};
}

PrefillAttentionParameters PrefillForm::parameters(const std::vector<double>& point) const {
  Variables v(point);
  PrefillAttentionParameters p;
  p.t0_us = v.positive();
  p.tile_us = v.positive() * machine.sms / 132 * 989.4e6 / machine.flop_per_us;
  p.tile_overhead = v.positive();
  p.smoothness = v.between(1, 6);
  p.longest_weight = v.positive();
  p.hot_factor = v.between(1, 1.3);
  p.bandwidth_efficiency = v.between(0.2, 1);
  p.benchmark_us = 100 * std::pow(10, v.between(0, 4));
  p.packs_heads = packs_heads;
  if (benchmark.own) {
    p.hot_factor = 1 / benchmark.sustained_ratio;
    p.benchmark_us = kNeverHot;
  }
  return p;
}

Fitted<PrefillAttentionParameters> PrefillForm::fit(const std::vector<MeasuredPrefill>& rows,
                                                    const std::vector<double>& start, int restarts,
                                                    int steps) const {
  const auto point = fit_point(*this, rows, start, restarts, steps);
  return {point, parameters(point)};
}

std::vector<double> AlgorithmForm::start() const {
  return {start_of(8), start_of(300e9) - 26, start_of(15), start_of(3e6) - 15};
}

AllReduceAlgorithm AlgorithmForm::parameters(const std::vector<double>& point) const {
  Variables v(point);
  AllReduceAlgorithm p;
  p.latency_us = v.positive();
  p.bytes_per_s = v.positive() * std::exp(26);
  p.ramp_us = v.positive();
  p.ramp_bytes = v.positive() * std::exp(15);
  return p;
}

Fitted<AllReduceAlgorithm> AlgorithmForm::fit(const std::vector<MeasuredAllReduce>& rows,
                                              const std::vector<double>& start, int restarts,
                                              int steps) const {
  const auto point = fit_point(*this, rows, start, restarts, steps);
  return {point, parameters(point)};
}

Fitted<AllReduceParameters> CappedForm::fit(const std::vector<MeasuredAllReduce>& rows,
                                            const std::vector<double>& start, int restarts,
                                            int steps) const {
  std::set<double> caps;
  for (const MeasuredAllReduce& row : rows) caps.insert(row.bytes);
  Fitted<AllReduceParameters> best{start, {AllReduceAlgorithm{}, 0, nccl}};
  double least = mape(*this, best.parameters, rows);
  for (const double cap : caps) {
    std::vector<MeasuredAllReduce> own;
    for (const MeasuredAllReduce& row : rows) {
      if (row.bytes <= cap) own.push_back(row);
    }
    if (own.size() < 6) continue;
    const auto fitted = AlgorithmForm{}.fit(own, start, restarts / 2, steps / 2);
    const AllReduceParameters p{fitted.parameters, cap, nccl};
    const double error = mape(*this, p, rows);
    if (error >= least) continue;
    least = error;
    best = {fitted.point, p};
  }
  return best;
}

bool is_held_out(const MeasuredGemm& row) {
  return quarter({row.shape.n, row.shape.k});
}
bool is_held_out(const MeasuredDecode& row) {
  return quarter({row.batch, row.context, row.q_heads, row.kv_heads});
}
bool is_held_out(const MeasuredPrefill& row) {
  return quarter({row.batch, row.tokens, row.q_heads, row.kv_heads});
}
bool is_held_out(const MeasuredAllReduce& row) {
  return quarter({row.bytes});
}

}  // namespace servesim::calibrate
