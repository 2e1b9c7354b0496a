// Attention, elementwise kernels and sampling on the cores.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/cpu_kernels.hpp"
#include "cpu/vectors.hpp"
#include "kernel_case.hpp"
#include "patterns.hpp"

namespace servesim::calibrate::cpu {
namespace {

constexpr int kTile = 32;  ///< keys whose scores are kept at once

/// The running softmax of one query.
struct Row {
  float most = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

/// Folds the scores of a tile into `row`, turns them into weights and rescales what was summed.
void fold(float* scores, int count, Row& row, float* out, std::int64_t head_dim) {
  float most = row.most;
  for (int t = 0; t < count; ++t) most = std::max(most, scores[t]);
  const float rescale = std::exp(row.most - most);
  row.most = most;
  row.sum *= rescale;
  for (int t = 0; t < count; ++t) row.sum += scores[t] = std::exp(scores[t] - most);
  for (std::int64_t i = 0; i < head_dim; i += kLanes) {
    store(out + i, load<Floats>(out + i) * rescale);
  }
}

}  // namespace

void attention(const Attention& a) {
  alignas(64) float wide[kTile][kMostHeadDim];
  float scores[kMostQueries][kTile];
  Row rows[kMostQueries];
  std::fill(a.out, a.out + a.queries * a.head_dim, 0.0f);
  const std::int64_t tokens = a.visible[a.queries - 1];
  for (std::int64_t first = 0; first < tokens; first += kTile) {
    const int count = static_cast<int>(std::min<std::int64_t>(kTile, tokens - first));
    for (int t = 0; t < count; ++t) bf16_to_floats(a.k_rows[first + t], wide[t], a.head_dim);
    for (int q = 0; q < a.queries; ++q) {
      const float* query = a.q + q * a.head_dim;
      const int seen = static_cast<int>(std::clamp<std::int64_t>(a.visible[q] - first, 0, count));
      for (int t = 0; t < seen; ++t) {
        Floats sum = {};
        for (std::int64_t i = 0; i < a.head_dim; i += kLanes) {
          sum += load<Floats>(query + i) * load<Floats>(&wide[t][i]);
        }
        scores[q][t] = sum_of(sum);
      }
      if (seen > 0) fold(scores[q], seen, rows[q], a.out + q * a.head_dim, a.head_dim);
    }
    for (int t = 0; t < count; ++t) bf16_to_floats(a.v_rows[first + t], wide[t], a.head_dim);
    for (int q = 0; q < a.queries; ++q) {
      float* out = a.out + q * a.head_dim;
      const int seen = static_cast<int>(std::clamp<std::int64_t>(a.visible[q] - first, 0, count));
      for (std::int64_t i = 0; i < a.head_dim; i += kLanes) {
        Floats sum = load<Floats>(out + i);
        for (int t = 0; t < seen; ++t) sum += scores[q][t] * load<Floats>(&wide[t][i]);
        store(out + i, sum);
      }
    }
  }
  for (int q = 0; q < a.queries; ++q) {
    for (std::int64_t i = 0; i < a.head_dim; ++i) a.out[q * a.head_dim + i] /= rows[q].sum;
  }
}

void rms_norm(const std::uint16_t* x, std::uint16_t* residual_out, const std::uint16_t* residual,
              const std::uint16_t* weight, std::uint16_t* out, std::int64_t n) {
  Floats squares = {};
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Floats sum = load_bf16(x + i) + load_bf16(residual + i);
    squares += sum * sum;
    for (int j = 0; j < kLanes; ++j) residual_out[i + j] = to_bf16(sum[j]);
  }
  const float scale = 1 / std::sqrt(sum_of(squares) / static_cast<float>(n) + 1e-5f);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Floats sum = load_bf16(x + i) + load_bf16(residual + i);
    const Floats normed = sum * scale * load_bf16(weight + i);
    for (int j = 0; j < kLanes; ++j) out[i + j] = to_bf16(normed[j]);
  }
}

void rope(const std::uint16_t* x, const float* cos_sin, std::uint16_t* out, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t i = 0; i < half; i += kLanes) {
    const Floats a = load_bf16(x + i), b = load_bf16(x + half + i);
    const Floats cosine = load<Floats>(cos_sin + i), sine = load<Floats>(cos_sin + half + i);
    const Floats first = a * cosine - b * sine, second = b * cosine + a * sine;
    for (int j = 0; j < kLanes; ++j) {
      out[i + j] = to_bf16(first[j]);
      out[half + i + j] = to_bf16(second[j]);
    }
  }
}

void silu_mul(const std::uint16_t* x, std::uint16_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float gate = from_bf16(x[i]);
    out[i] = to_bf16(gate / (1 + std::exp(-gate)) * from_bf16(x[n + i]));
  }
}

void softmax(const float* logits, float* out, std::int64_t n, float scale) {
  float most = logits[0];
  for (std::int64_t i = 1; i < n; ++i) most = std::max(most, logits[i]);
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += out[i] = std::exp(scale * (logits[i] - most));
  const float factor = 1 / sum;
  for (std::int64_t i = 0; i < n; ++i) out[i] *= factor;
}

std::int64_t sample_token(const float* logits, std::int64_t n, std::int64_t row,
                          std::uint64_t noise_seed, float scale,
                          std::vector<std::int32_t>& scratch) {
  // The k largest in a heap whose root is the least of them: most logits cost one comparison.
  const auto above = [logits](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  scratch.clear();
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::int32_t>(i);
    if (static_cast<std::int64_t>(scratch.size()) < kTopK) {
      scratch.push_back(at);
      std::push_heap(scratch.begin(), scratch.end(), above);
    } else if (logits[i] > logits[scratch.front()]) {
      std::pop_heap(scratch.begin(), scratch.end(), above);
      scratch.back() = at;
      std::push_heap(scratch.begin(), scratch.end(), above);
    }
  }
  std::sort(scratch.begin(), scratch.end(), above);
  const float most = logits[scratch[0]];
  float total = 0;
  for (const std::int32_t i : scratch) total += std::exp(scale * (logits[i] - most));
  float before = 0, best = -1;
  std::int64_t token = 0;
  for (const std::int32_t i : scratch) {
    if (before >= static_cast<float>(kTopP)) break;
    const float p = std::exp(scale * (logits[i] - most)) / total;
    before += p;
    const float wait = -std::log(random_unit(noise_seed, static_cast<std::uint64_t>(row * n + i)));
    const float race = p / std::max(wait, 1e-10f);
    if (race <= best) continue;
    best = race;
    token = i;
  }
  return token;
}

}  // namespace servesim::calibrate::cpu
