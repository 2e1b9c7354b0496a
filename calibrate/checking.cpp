#include "checking.hpp"

#include <algorithm>
#include <cmath>

namespace servesim::calibrate {
namespace {

template <class Stored, class Decode>
Results decoded(const Stored* from, Decode decode) {
  return [=](std::int64_t first, std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    std::transform(from + first, from + first + count, values.begin(), decode);
    return values;
  };
}

/// Compares results from `first` on with all of `want`.
void compare(Checker& checker, const Results& out, std::int64_t first,
             const std::vector<double>& want, double relative, double absolute) {
  const auto got = out(first, static_cast<std::int64_t>(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i) {
    checker.value(got[i], want[i], relative, absolute);
  }
}

}  // namespace

void Checker::dot(double got, const Dot& want) {
  note(std::abs(got - want.value), 0.01 * std::abs(want.value) + 0.003 * want.norm);
}

void Checker::value(double got, double want, double relative, double absolute) {
  note(std::abs(got - want), relative * std::abs(want) + absolute);
}

void Checker::note(double error, double tolerated) {
  const double ratio = error / tolerated;
  worst_ = std::max(worst_, std::isnan(ratio) ? kHopeless : ratio);
}

std::vector<std::int64_t> spread_indices(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> indices;
  const std::int64_t taken = std::min(count, most);
  for (std::int64_t i = 0; i < taken; ++i) {
    indices.push_back(count <= most ? i : i * (count - 1) / (most - 1));
  }
  return indices;
}

Results results_of(const std::uint16_t* bf16) {
  return decoded(bf16, [](std::uint16_t bits) { return static_cast<double>(from_bf16(bits)); });
}
Results results_of(const float* values) {
  return decoded(values, [](float value) { return static_cast<double>(value); });
}
Results results_of(const std::int32_t* tokens) {
  return decoded(tokens, [](std::int32_t token) { return static_cast<double>(token); });
}

double check_gemv(const Case& c, const Results& out, const Operand& weights, const Operand& x,
                  const Operand& scales) {
  Checker checker;
  for (const std::int64_t row : spread_indices(c.n, 24)) {
    checker.dot(out(row, 1)[0], reference_gemv(weights, x, scales, c.k, row));
  }
  return checker.worst();
}

double check_gemm(const Case& c, const Results& out, const Operand& a, const Operand& weights) {
  Checker checker;
  for (const std::int64_t row : spread_indices(c.m, 5)) {
    const auto got = out(row * c.n, c.n);
    for (const std::int64_t column : spread_indices(c.n, 7)) {
      checker.dot(got[static_cast<std::size_t>(column)],
                  reference_dot(a, weights, c.k, row, column));
    }
  }
  return checker.worst();
}

double check_decode(const Case& c, const Results& out, const PagedOperands& operands) {
  Checker checker;
  const PagedKv kv{operands.k, operands.v, &operands.tables.front()};
  for (const std::int64_t sequence : spread_indices(c.batch, 2)) {
    for (const std::int64_t head : spread_indices(c.heads, 3)) {
      compare(checker, out, (sequence * c.heads + head) * c.head_dim,
              reference_decode(c, operands.q, kv, sequence, head), 0.01, 0.005);
    }
  }
  return checker.worst();
}

double check_prefill(const Case& c, const Results& out, const PromptOperands& operands,
                     double relative) {
  Checker checker;
  for (const std::int64_t token : spread_indices(c.context, 5)) {
    const std::int64_t prompt = token % c.batch, head = token % c.heads;
    compare(checker, out, ((prompt * c.context + token) * c.heads + head) * c.head_dim,
            reference_prefill(c, operands.q, operands.k, operands.v, prompt, token, head), relative,
            relative / 2);
  }
  return checker.worst();
}

double check_rms_norm(const Case& c, const Results& out, const Operand& x, const Operand& residual,
                      const Operand& weight) {
  Checker checker;
  for (const std::int64_t row : spread_indices(c.m, 4)) {
    compare(checker, out, row * c.n, reference_rms_norm(x, residual, weight, c.n, row), 0.01, 0.01);
  }
  return checker.worst();
}

double check_rope(const Case& c, const Results& out, const Operand& x) {
  Checker checker;
  const std::int64_t heads = c.heads + c.kv_heads;
  for (const std::int64_t token : spread_indices(c.m, 4)) {
    for (const std::int64_t head : spread_indices(heads, 3)) {
      compare(checker, out, (token * heads + head) * c.head_dim,
              reference_rope(x, c.head_dim, heads, token, head), 0.01, 0.01);
    }
  }
  return checker.worst();
}

double check_silu_mul(const Case& c, const Results& out, const Operand& x) {
  Checker checker;
  for (const std::int64_t row : spread_indices(c.m, 8)) {
    for (const std::int64_t i : spread_indices(c.n, 20)) {
      checker.value(out(row * c.n + i, 1)[0], reference_silu_mul(x, c.n, row, i), 0.01, 0.001);
    }
  }
  return checker.worst();
}

double check_softmax(const Case& c, const Results& out, const Operand& logits) {
  Checker checker;
  for (const std::int64_t row : spread_indices(c.m, 2)) {
    compare(checker, out, row * c.n, reference_softmax(logits, c.n, row), 1e-3, 1e-9);
  }
  return checker.worst();
}

double check_tokens(const Case& c, const Results& out, const Operand& logits) {
  Checker checker;
  for (const std::int64_t row : spread_indices(c.m, 3)) {
    checker.equal(static_cast<std::int64_t>(out(row, 1)[0]),
                  reference_token(logits, c.n, row, kNoiseSeed));
  }
  return checker.worst();
}

double check_stream(Kernel kernel, std::int64_t count, const Results& out, const Operand& from) {
  Checker checker;
  for (const std::int64_t i : spread_indices(count, 1000)) {
    const auto at = static_cast<std::uint64_t>(i);
    const double want = kernel == Kernel::kWrite ? kWritten
                        : kernel == Kernel::kCopy
                            ? from(at)
                            : from(at) + 3 * from(at + static_cast<std::uint64_t>(count));
    checker.value(out(i, 1)[0], want, 1e-5, 1e-5);
  }
  return checker.worst();
}

}  // namespace servesim::calibrate
