/// Each kernel form as a fitting problem: bounds, start, prediction.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "cost/measured_kernels.hpp"
#include "nelder_mead.hpp"

namespace servesim::calibrate {

/// A fitted point and the parameters it stands for.
template <class P>
struct Fitted {
  std::vector<double> point;
  P parameters;
};

/// Mean absolute relative error.
template <class Form, class Row>
double mape(const Form& form, const typename Form::Parameters& p, const std::vector<Row>& rows) {
  double sum = 0;
  for (const Row& row : rows) sum += std::abs(form.predict(p, row) / row.us - 1);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

/// Least mean absolute log error, smoothed near zero; a faint pull keeps idle variables in range.
template <class Form, class Row>
std::vector<double> fit_point(const Form& form, const std::vector<Row>& rows,
                              const std::vector<double>& start, int restarts, int steps) {
  const auto loss = [&](const std::vector<double>& point) {
    const auto p = form.parameters(point);
    double sum = 0;
    for (const Row& row : rows) {
      const double error = std::log(form.predict(p, row) / row.us);
      sum += std::sqrt(error * error + 1e-4);
    }
    double pull = 0;
    for (const double v : point) pull += v * v * v * v;
    return sum / static_cast<double>(rows.size()) + 1e-7 * pull;
  };
  return minimise(loss, start, restarts, steps);
}

/// How the timings at hand were made.
struct Benchmark {
  /// By calibrate itself: short bursts, each call on other operands than the last. Published ones
  /// heat themselves and find small operands in L2.
  bool own = false;
  double sustained_ratio = 1;      ///< own: sustained rate against that of a burst, measured
  double tile_scale = 1;           ///< see GemmParameters
  double lowest_efficiency = 0.3;  ///< share of the rates that the search may go down to
};

/// GEMM parameters of both engines: the same kernels, timed by two benchmarks.
struct GemmPair {
  GemmParameters vllm;
  GemmParameters tensorrt_llm;
  const GemmParameters& of(MeasuredEngine engine) const {
    return engine == MeasuredEngine::kTensorRtLlm ? tensorrt_llm : vllm;
  }
};

/// GEMMs: 16-bit ones, or 8-bit ones with each engine's quantisation of the activations. How much
/// sustained compute slows 8-bit ones, and the benchmarks' own heating, are those of `plain`, the
/// 16-bit fit.
struct GemmForm {
  using Parameters = GemmPair;
  MachineRates machine;
  bool with_table = true;   ///< of corrections by m
  bool table_by_n = false;  ///< and one by n on top
  Benchmark benchmark = {};
  std::optional<GemmPair> plain = {};  ///< of 8-bit GEMMs

  std::vector<double> start() const;
  Parameters parameters(const std::vector<double>& point) const;
  double predict(const Parameters& p, const MeasuredGemm& row) const {
    return predict_us(p.of(row.engine), machine, row);
  }
  Fitted<Parameters> fit(const std::vector<MeasuredGemm>& rows, const std::vector<double>& start,
                         int restarts, int steps) const;
};

/// Paged attention of one query a sequence.
struct DecodeForm {
  using Parameters = DecodeAttentionParameters;
  MachineRates machine;
  Benchmark benchmark = {};

  std::vector<double> start() const;
  Parameters parameters(const std::vector<double>& point) const;
  double predict(const Parameters& p, const MeasuredDecode& row) const {
    return predict_us(p, machine, row);
  }
  Fitted<Parameters> fit(const std::vector<MeasuredDecode>& rows, const std::vector<double>& start,
                         int restarts, int steps) const;
};

/// Causal attention of whole prompts.
struct PrefillForm {
  using Parameters = PrefillAttentionParameters;
  MachineRates machine;
  bool packs_heads = true;
  Benchmark benchmark = {};

  std::vector<double> start() const;
  Parameters parameters(const std::vector<double>& point) const;
  double predict(const Parameters& p, const MeasuredPrefill& row) const {
    return predict_us(p, machine, row);
  }
  Fitted<Parameters> fit(const std::vector<MeasuredPrefill>& rows, const std::vector<double>& start,
                         int restarts, int steps) const;
};

/// One all-reduce algorithm.
struct AlgorithmForm {
  using Parameters = AllReduceAlgorithm;

  std::vector<double> start() const;
  Parameters parameters(const std::vector<double>& point) const;
  double predict(const Parameters& p, const MeasuredAllReduce& row) const {
    return all_reduce_us(p, row.bytes);
  }
  Fitted<Parameters> fit(const std::vector<MeasuredAllReduce>& rows,
                         const std::vector<double>& start, int restarts, int steps) const;
};

/// An engine's own all-reduce up to the message size that explains the rows best, NCCL above.
struct CappedForm {
  using Parameters = AllReduceParameters;
  AllReduceAlgorithm nccl;

  std::vector<double> start() const { return AlgorithmForm{}.start(); }
  double predict(const Parameters& p, const MeasuredAllReduce& row) const {
    return all_reduce_us(p, row.bytes);
  }
  Fitted<Parameters> fit(const std::vector<MeasuredAllReduce>& rows,
                         const std::vector<double>& start, int restarts, int steps) const;
};

/// Whether a row is kept out of the first fit: about a quarter of all shapes, by a hash of their
/// sizes; of a short list it may be a third.
bool is_held_out(const MeasuredGemm& row);
bool is_held_out(const MeasuredDecode& row);
bool is_held_out(const MeasuredPrefill& row);
bool is_held_out(const MeasuredAllReduce& row);

}  // namespace servesim::calibrate
