#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace servesim::calibrate {
namespace {

std::uint64_t u(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

/// softmax(scores) times values, `values(token, dim)`.
template <class Values>
std::vector<double> weighted_values(std::vector<double> scores, std::int64_t head_dim,
                                    const Values& values) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - most);
  std::vector<double> out(u(head_dim), 0);
  for (std::size_t t = 0; t < scores.size(); ++t) {
    for (std::int64_t i = 0; i < head_dim; ++i) {
      out[u(i)] += scores[t] / sum * values(static_cast<std::int64_t>(t), i);
    }
  }
  return out;
}

}  // namespace

double quantised(DType type, double value) {
  if (type == DType::kFp8) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(fraction * 16) / 16, exponent);
  }
  if (type == DType::kInt8) return std::nearbyint(value * kInt8Scale);
  return value;
}

Dot reference_dot(const Operand& a, const Operand& b, std::int64_t k, std::int64_t row,
                  std::int64_t column) {
  Dot dot;
  for (std::int64_t i = 0; i < k; ++i) {
    const double term = quantised(b.type, a(u(row * k + i))) * b(u(column * k + i));
    dot.value += term;
    dot.norm += term * term;
  }
  dot.norm = std::sqrt(dot.norm);
  return dot;
}

Dot reference_gemv(const Operand& weights, const Operand& x, const Operand& scales, std::int64_t k,
                   std::int64_t row) {
  Dot dot;
  for (std::int64_t i = 0; i < k; ++i) {
    double scale = 1;
    if (weights.type == DType::kInt8) scale = scales(u(row));
    if (weights.type == DType::kInt4) scale = scales(u(row * (k / kInt4Group) + i / kInt4Group));
    const double term = scale * weights(u(row * k + i)) * x(u(i));
    dot.value += term;
    dot.norm += term * term;
  }
  dot.norm = std::sqrt(dot.norm);
  return dot;
}

std::vector<double> reference_decode(const Case& c, const Operand& q, const PagedKv& kv,
                                     std::int64_t sequence, std::int64_t head) {
  const std::int64_t kv_head = head / (c.heads / c.kv_heads);
  const auto at = [&](std::int64_t token, std::int64_t dim) {
    const std::int64_t block =
        (*kv.table)[u(sequence * kv_blocks_per_sequence(c) + token / c.block_size)];
    const std::int64_t row = block * c.block_size + token % c.block_size;
    return u((row * c.kv_heads + kv_head) * c.head_dim + dim);
  };
  std::vector<double> scores;
  for (std::int64_t t = 0; t < c.context; ++t) {
    double score = 0;
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      score += q(u((sequence * c.heads + head) * c.head_dim + i)) * kv.k(at(t, i));
    }
    scores.push_back(score / std::sqrt(static_cast<double>(c.head_dim)));
  }
  return weighted_values(std::move(scores), c.head_dim,
                         [&](std::int64_t t, std::int64_t i) { return kv.v(at(t, i)); });
}

std::vector<double> reference_prefill(const Case& c, const Operand& q, const Operand& k,
                                      const Operand& v, std::int64_t prompt, std::int64_t token,
                                      std::int64_t head) {
  const std::int64_t kv_head = head / (c.heads / c.kv_heads);
  const auto at = [&](std::int64_t t, std::int64_t heads, std::int64_t h, std::int64_t dim) {
    return u(((prompt * c.context + t) * heads + h) * c.head_dim + dim);
  };
  std::vector<double> scores;
  for (std::int64_t t = 0; t <= token; ++t) {
    double score = 0;
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      score += q(at(token, c.heads, head, i)) * k(at(t, c.kv_heads, kv_head, i));
    }
    scores.push_back(score / std::sqrt(static_cast<double>(c.head_dim)));
  }
  return weighted_values(std::move(scores), c.head_dim, [&](std::int64_t t, std::int64_t i) {
    return v(at(t, c.kv_heads, kv_head, i));
  });
}

std::vector<double> reference_rms_norm(const Operand& x, const Operand& residual,
                                       const Operand& weight, std::int64_t n, std::int64_t row) {
  std::vector<double> out;
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double sum = x(u(row * n + i)) + residual(u(row * n + i));
    out.push_back(sum);
    squares += sum * sum;
  }
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
  for (std::int64_t i = 0; i < n; ++i) out[u(i)] *= scale * weight(u(i));
  return out;
}

double rope_angle(std::int64_t token, std::int64_t pair, std::int64_t head_dim) {
  return static_cast<double>(token) *
         std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
}

std::vector<double> reference_rope(const Operand& x, std::int64_t head_dim, std::int64_t heads,
                                   std::int64_t token, std::int64_t head) {
  std::vector<double> out(u(head_dim));
  const std::int64_t first = (token * heads + head) * head_dim;
  const std::int64_t half = head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double angle = rope_angle(token, i, head_dim);
    const double a = x(u(first + i)), b = x(u(first + half + i));
    out[u(i)] = a * std::cos(angle) - b * std::sin(angle);
    out[u(half + i)] = b * std::cos(angle) + a * std::sin(angle);
  }
  return out;
}

double reference_silu_mul(const Operand& x, std::int64_t n, std::int64_t row, std::int64_t column) {
  const double gate = x(u(row * 2 * n + column));
  return gate / (1 + std::exp(-gate)) * x(u(row * 2 * n + n + column));
}

std::vector<double> reference_softmax(const Operand& logits, std::int64_t n, std::int64_t row) {
  std::vector<double> out;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    out.push_back(std::exp(kLogitScale * logits(u(row * n + i))));
    sum += out.back();
  }
  for (double& p : out) p /= sum;
  return out;
}

std::int64_t reference_token(const Operand& logits, std::int64_t n, std::int64_t row,
                             std::uint64_t noise_seed) {
  std::vector<std::int64_t> order(u(n));
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> row_logits;
  for (std::int64_t i = 0; i < n; ++i) row_logits.push_back(kLogitScale * logits(u(row * n + i)));
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return row_logits[u(a)] > row_logits[u(b)];
  });
  order.resize(u(std::min(kTopK, n)));
  double total = 0;
  for (const std::int64_t i : order) total += std::exp(row_logits[u(i)] - row_logits[u(order[0])]);
  double before = 0;
  double best = -1;
  std::int64_t token = 0;
  for (const std::int64_t i : order) {
    if (before >= kTopP) break;
    const double p = std::exp(row_logits[u(i)] - row_logits[u(order[0])]) / total;
    before += p;
    const double wait = -std::log(static_cast<double>(random_unit(noise_seed, u(row * n + i))));
    const double race = p / std::max(wait, 1e-10);
    if (race > best) {
      best = race;
      token = i;
    }
  }
  return token;
}

}  // namespace servesim::calibrate
