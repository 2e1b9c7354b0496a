/// Comparing what kernels computed with the references: which elements, and how much error is
/// tolerated. Alike for cores and GPUs, which differ in how results are read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "operands.hpp"
#include "reference.hpp"

namespace servesim::calibrate {

/// The largest error over what is tolerated.
class Checker {
 public:
  /// A sum of products that ends in bf16: 8 bits of mantissa, and sums in another order.
  void dot(double got, const Dot& want);
  void value(double got, double want, double relative, double absolute);
  void equal(std::int64_t got, std::int64_t want) { note(got == want ? 0 : 2, 1); }
  /// Above 1 is wrong, and so is a checker that has compared nothing.
  double worst() const { return worst_ < 0 ? kHopeless : worst_; }

 private:
  static constexpr double kHopeless = 1e9;
  void note(double error, double tolerated);
  double worst_ = -1;
};

/// `most` indices spread over [0, count), the first and last among them. REQUIRES: most >= 2.
std::vector<std::int64_t> spread_indices(std::int64_t count, std::int64_t most);

/// Seed of the noise that tokens are drawn with.
constexpr std::uint64_t kNoiseSeed = 0x5eed;

/// Reads `count` results, from number `first` on, as what they stand for.
using Results = std::function<std::vector<double>(std::int64_t first, std::int64_t count)>;
/// Results that lie in memory as bf16, float and token numbers.
Results results_of(const std::uint16_t* bf16);
Results results_of(const float* values);
Results results_of(const std::int32_t* tokens);

/// Each compares the results of a case with its reference and returns Checker::worst().
double check_gemv(const Case& c, const Results& out, const Operand& weights, const Operand& x,
                  const Operand& scales);
double check_gemm(const Case& c, const Results& out, const Operand& a, const Operand& weights);
double check_decode(const Case& c, const Results& out, const PagedOperands& operands);
/// `relative` is tolerated, and half of it absolutely.
double check_prefill(const Case& c, const Results& out, const PromptOperands& operands,
                     double relative);
double check_rms_norm(const Case& c, const Results& out, const Operand& x, const Operand& residual,
                      const Operand& weight);
double check_rope(const Case& c, const Results& out, const Operand& x);
double check_silu_mul(const Case& c, const Results& out, const Operand& x);
double check_softmax(const Case& c, const Results& out, const Operand& logits);
double check_tokens(const Case& c, const Results& out, const Operand& logits);
/// Of kWrite (every float kWritten), kCopy and kTriad over `count` floats; a triad's second source
/// follows the first.
double check_stream(Kernel kernel, std::int64_t count, const Results& out, const Operand& from);
constexpr float kWritten = 1.5f;

}  // namespace servesim::calibrate
