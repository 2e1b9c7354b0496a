// The CPU backend's kernels, one by one and without its arenas, against plain loops in double
// precision: odd numbers of rows, depths that are no multiple of a block, single tokens.
#include "cpu/cpu_kernels.hpp"

#include <cmath>
#include <numeric>

#include "kernel_case.hpp"
#include "patterns.hpp"
#include "reference.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

template <class T>
std::vector<T> kernel_values(DType type, std::uint64_t seed, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<T>(pattern(type, seed, static_cast<std::uint64_t>(i))));
  }
  return values;
}

std::vector<float> kernel_floats(std::uint64_t seed, std::int64_t count) {
  std::vector<float> values;
  for (const std::uint16_t bits : kernel_values<std::uint16_t>(DType::kBf16, seed, count)) {
    values.push_back(from_bf16(bits));
  }
  return values;
}

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// A bf16 result of a sum over `terms` values of size about one.
Approx rounded_sum(double want, std::int64_t terms) {
  return Approx(want).epsilon(0.005).margin(1e-4 * std::sqrt(static_cast<double>(terms)));
}

/// Softmax-weighted values of one query, in double precision.
std::vector<double> plain_attention(const float* q, const std::vector<const std::uint16_t*>& k,
                                    const std::vector<const std::uint16_t*>& v, std::int64_t seen,
                                    std::int64_t head_dim) {
  std::vector<double> weights;
  for (std::int64_t t = 0; t < seen; ++t) {
    double score = 0;
    for (std::int64_t i = 0; i < head_dim; ++i) score += q[i] * from_bf16(k[at(t)][i]);
    weights.push_back(std::exp(score));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> out(at(head_dim), 0);
  for (std::int64_t t = 0; t < seen; ++t) {
    for (std::int64_t i = 0; i < head_dim; ++i) {
      out[at(i)] += weights[at(t)] / sum * from_bf16(v[at(t)][i]);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("streams move every byte and no more", "[calibrate]") {
  for (const std::int64_t count : {16, 64, 176, 4096}) {
    INFO("count=" << count);
    const auto from = kernel_floats(1, count), second = kernel_floats(2, count);
    std::vector<float> to(at(count + 16), -7.0f);
    cpu::copy(to.data(), from.data(), 4 * count);
    CHECK(std::equal(from.begin(), from.end(), to.begin()));
    CHECK(to[at(count)] == -7.0f);
    cpu::write(to.data(), 4 * count, 2.5f);
    CHECK(std::count(to.begin(), to.end(), 2.5f) == count);
    CHECK(to[at(count)] == -7.0f);
    cpu::triad(to.data(), from.data(), second.data(), count);
    for (std::int64_t i = 0; i < count; ++i) {
      CHECK(to[at(i)] == Approx(from[at(i)] + 3.0 * second[at(i)]));
    }
    CHECK(to[at(count)] == -7.0f);
  }
  std::vector<std::uint32_t> words(4096);
  std::iota(words.begin(), words.end(), 1u);
  CHECK(cpu::read(words.data(), 4 * 4096) == 4096u * 4097u / 2);
  words[4095] += 5;
  CHECK(cpu::read(words.data(), 4 * 4096) == 4096u * 4097u / 2 + 5);
}

TEST_CASE("multiply-adds in registers come to their closed form", "[calibrate]") {
  for (const std::int64_t fmas : {1, 1000, 20'000, 500'000, 5'000'000}) {
    INFO("fmas=" << fmas);
    CHECK(cpu::peak_fma(fmas) == Approx(cpu::peak_fma_result(fmas)).margin(1e-3));
  }
  // Every step counts: a kernel that did fewer would be told apart.
  CHECK(cpu::peak_fma_result(20'000) - cpu::peak_fma_result(30'000) > 0.05);
  CHECK(cpu::peak_fma_result(1'000'000'000) == Approx(1));
}

TEST_CASE("bf16 becomes floats exactly", "[calibrate]") {
  const auto bits = kernel_values<std::uint16_t>(DType::kBf16, 5, 64);
  std::vector<float> wide(64);
  cpu::bf16_to_floats(bits.data(), wide.data(), 64);
  for (std::size_t i = 0; i < 64; ++i) CHECK(wide[i] == from_bf16(bits[i]));
}

TEST_CASE("a blocked product is the plain one for every number of rows", "[calibrate]") {
  constexpr std::int64_t kColumns = 72;  // one strip of 64 and some more
  for (const std::int64_t k : {16, 512, 528, 1040}) {
    const auto weights = kernel_values<std::uint16_t>(DType::kBf16, 2, kColumns * k);
    for (const std::int64_t m : {1, 2, 3, 5, 6, 7, 11, 13}) {
      INFO("m=" << m << " k=" << k);
      const auto a = kernel_floats(3, m * k);
      std::vector<std::uint16_t> out(at(m * kColumns), 0xffff);
      const cpu::Gemm g{a.data(), weights.data(), out.data(), m, kColumns, k};
      cpu::gemm(g, 0, 40);  // two threads' parts
      cpu::gemm(g, 40, kColumns);
      for (std::int64_t i = 0; i < m * kColumns; ++i) {
        double want = 0;
        for (std::int64_t j = 0; j < k; ++j) {
          want += a[at(i / kColumns * k + j)] * from_bf16(weights[at(i % kColumns * k + j)]);
        }
        CHECK(from_bf16(out[at(i)]) == rounded_sum(want, k));
      }
    }
  }
}

TEST_CASE("a part of a product leaves the other columns alone", "[calibrate]") {
  const auto a = kernel_floats(3, 2 * 32);
  const auto weights = kernel_values<std::uint16_t>(DType::kBf16, 2, 16 * 32);
  std::vector<std::uint16_t> out(32, 0xffff);
  cpu::gemm({a.data(), weights.data(), out.data(), 2, 16, 32}, 4, 12);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t column = 0; column < 16; ++column) {
      CHECK((out[16 * row + column] == 0xffff) == (column < 4 || column >= 12));
    }
  }
}

TEST_CASE("weight-only products undo what packs their weights", "[calibrate]") {
  constexpr std::int64_t kRows = 12, kDepth = 384;
  const auto x = kernel_floats(4, kDepth);
  const auto scales = kernel_values<std::uint16_t>(DType::kBf16, 5, kRows * kDepth / kInt4Group);
  std::vector<float> packed_x(x);  // int4: even ones, then odd ones
  for (std::int64_t i = 0; i < kDepth; ++i) packed_x[at(i % 2 * kDepth / 2 + i / 2)] = x[at(i)];
  for (const DType type : {DType::kFp16, DType::kInt8, DType::kInt4}) {
    INFO(name_of(type));
    std::vector<std::uint16_t> out(kRows, 0xffff);
    const auto halves = kernel_values<std::uint16_t>(type, 6, kRows * kDepth);
    const auto bytes = kernel_values<std::uint8_t>(type, 6, kRows * kDepth);
    if (type == DType::kFp16) {
      cpu::gemv_fp16(halves.data(), x.data(), out.data(), kDepth, 0, kRows);
    } else if (type == DType::kInt8) {
      cpu::gemv_int8(reinterpret_cast<const std::int8_t*>(bytes.data()), scales.data(), x.data(),
                     out.data(), kDepth, 0, kRows);
    } else {
      cpu::gemv_int4(bytes.data(), scales.data(), packed_x.data(), out.data(), kDepth, 0, kRows);
    }
    const Operand weights{type, 6, 0};
    for (std::int64_t row = 0; row < kRows; ++row) {
      double want = 0;
      for (std::int64_t i = 0; i < kDepth; ++i) {
        double scale = 1;
        if (type == DType::kInt8) scale = from_bf16(scales[at(row)]);
        if (type == DType::kInt4) scale = from_bf16(scales[at(row * 3 + i / kInt4Group)]);
        want += scale * weights(static_cast<std::uint64_t>(row * kDepth + i)) * x[at(i)];
      }
      CHECK(from_bf16(out[at(row)]) == Approx(want).epsilon(0.005).margin(0.02 * std::abs(want)));
    }
  }
}

TEST_CASE("attention over paged rows is the plain sum, whatever each query sees", "[calibrate]") {
  for (const std::int64_t head_dim : {16, 48, 128}) {
    for (const std::int64_t tokens : {1, 2, 31, 32, 33, 70}) {
      INFO("head_dim=" << head_dim << " tokens=" << tokens);
      const auto keys = kernel_values<std::uint16_t>(DType::kBf16, 7, tokens * head_dim);
      const auto values = kernel_values<std::uint16_t>(DType::kBf16, 8, tokens * head_dim);
      std::vector<const std::uint16_t*> k, v;
      for (std::int64_t t = 0; t < tokens; ++t) {  // scattered, as blocks are
        const std::int64_t row = t * 7 % tokens;
        k.push_back(keys.data() + row * head_dim);
        v.push_back(values.data() + row * head_dim);
      }
      constexpr int kQueries = 3;
      auto q = kernel_floats(9, kQueries * head_dim);
      for (float& value : q) value /= std::sqrt(static_cast<float>(head_dim));
      const std::int64_t visible[kQueries] = {1, (tokens + 1) / 2, tokens};
      std::vector<float> out(at(kQueries * head_dim), -1);
      cpu::attention({q.data(), kQueries, head_dim, k.data(), v.data(), visible, out.data()});
      for (int query = 0; query < kQueries; ++query) {
        const auto want =
            plain_attention(q.data() + query * head_dim, k, v, visible[query], head_dim);
        for (std::int64_t i = 0; i < head_dim; ++i) {
          CHECK(out[at(query * head_dim + i)] == Approx(want[at(i)]).margin(1e-4));
        }
      }
    }
  }
}

TEST_CASE("scores far apart do not overflow a running softmax", "[calibrate]") {
  constexpr std::int64_t kDim = 16, kTokens = 40;
  std::vector<std::uint16_t> keys(kDim * kTokens, to_bf16(0)), values;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    keys[at(t * kDim)] = to_bf16(static_cast<float>(t) * 5);  // scores of 0 to 195 times the query
    for (std::int64_t i = 0; i < kDim; ++i) values.push_back(to_bf16(static_cast<float>(t)));
  }
  std::vector<const std::uint16_t*> k, v;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    k.push_back(keys.data() + t * kDim);
    v.push_back(values.data() + t * kDim);
  }
  std::vector<float> q(kDim, 0), out(kDim, -1);
  const std::int64_t visible = kTokens;
  for (const float direction : {10.0f, -10.0f}) {
    q[0] = direction;
    cpu::attention({q.data(), 1, kDim, k.data(), v.data(), &visible, out.data()});
    for (const float value : out) CHECK(value == Approx(direction > 0 ? 39 : 0).margin(1e-6));
  }
}

TEST_CASE("a norm adds the residual, keeps it, and scales by the weights", "[calibrate]") {
  for (const std::int64_t n : {16, 48, 1040}) {
    INFO("n=" << n);
    const auto x = kernel_values<std::uint16_t>(DType::kBf16, 1, n);
    const auto residual = kernel_values<std::uint16_t>(DType::kBf16, 2, n);
    const auto weight = kernel_values<std::uint16_t>(DType::kBf16, 3, n);
    std::vector<std::uint16_t> kept(at(n)), out(at(n));
    cpu::rms_norm(x.data(), kept.data(), residual.data(), weight.data(), out.data(), n);
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double sum = from_bf16(x[at(i)]) + from_bf16(residual[at(i)]);
      CHECK(from_bf16(kept[at(i)]) == Approx(sum).epsilon(0.005));
      squares += sum * sum;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::int64_t i = 0; i < n; ++i) {
      const double sum = from_bf16(x[at(i)]) + from_bf16(residual[at(i)]);
      CHECK(from_bf16(out[at(i)]) ==
            Approx(sum * scale * from_bf16(weight[at(i)])).epsilon(0.005).margin(1e-3));
    }
  }
}

TEST_CASE("a quarter turn swaps the halves of a head", "[calibrate]") {
  const auto x = kernel_values<std::uint16_t>(DType::kBf16, 1, 32);
  std::vector<float> quarter(32, 0), none(32, 0);
  std::fill(quarter.begin() + 16, quarter.end(), 1.0f);
  std::fill(none.begin(), none.begin() + 16, 1.0f);
  std::vector<std::uint16_t> out(32);
  cpu::rope(x.data(), none.data(), out.data(), 32);
  CHECK(out == x);
  cpu::rope(x.data(), quarter.data(), out.data(), 32);
  for (std::size_t i = 0; i < 16; ++i) {
    CHECK(from_bf16(out[i]) == -from_bf16(x[16 + i]));
    CHECK(from_bf16(out[16 + i]) == from_bf16(x[i]));
  }
}

TEST_CASE("a gate of any length multiplies what it lets through", "[calibrate]") {
  for (const std::int64_t n : {1, 7, 33}) {
    const auto x = kernel_values<std::uint16_t>(DType::kBf16, 1, 2 * n);
    std::vector<std::uint16_t> out(at(n));
    cpu::silu_mul(x.data(), out.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double gate = from_bf16(x[at(i)]);
      CHECK(from_bf16(out[at(i)]) ==
            Approx(gate / (1 + std::exp(-gate)) * from_bf16(x[at(n + i)])).epsilon(0.005));
    }
  }
}

TEST_CASE("probabilities sum to one and are not moved by an offset", "[calibrate]") {
  for (const std::int64_t n : {1, 3, 1001}) {
    INFO("n=" << n);
    auto logits = kernel_floats(1, n);
    std::vector<float> p(at(n)), moved(at(n));
    cpu::softmax(logits.data(), p.data(), n, 4);
    CHECK(std::accumulate(p.begin(), p.end(), 0.0) == Approx(1).epsilon(1e-5));
    for (float& logit : logits) logit += 200;  // exp(800) would be infinite
    cpu::softmax(logits.data(), moved.data(), n, 4);
    for (std::int64_t i = 0; i < n; ++i) {
      CHECK(moved[at(i)] == Approx(p[at(i)]).epsilon(1e-3).margin(1e-9));
    }
  }
}

TEST_CASE("a token is drawn from few logits too, and a certain one always", "[calibrate]") {
  std::vector<std::int32_t> scratch;
  const std::vector<float> one{0.3f};
  CHECK(cpu::sample_token(one.data(), 1, 0, 1, 4, scratch) == 0);
  std::vector<float> certain(200, 0.0f);
  certain[137] = 50;
  for (std::uint64_t noise = 0; noise < 20; ++noise) {
    CHECK(cpu::sample_token(certain.data(), 200, 3, noise, 4, scratch) == 137);
  }
  // Three of equal weight above all others: each is drawn, no other is.
  std::vector<float> three(100, -20.0f);
  three[3] = three[40] = three[99] = 1;
  std::vector<int> drawn(100, 0);
  for (std::uint64_t noise = 0; noise < 300; ++noise) {
    ++drawn[at(cpu::sample_token(three.data(), 100, 0, noise, 4, scratch))];
  }
  CHECK(drawn[3] + drawn[40] + drawn[99] == 300);
  CHECK(std::min({drawn[3], drawn[40], drawn[99]}) > 50);
}

TEST_CASE("the kernel draws the token that the reference draws", "[calibrate]") {
  std::vector<std::int32_t> scratch;
  for (const std::int64_t n : {10, 49, 50, 51, 3001}) {
    std::vector<float> logits;
    const Operand patterns{DType::kFp32, 7, 0};
    for (std::int64_t i = 0; i < 2 * n; ++i) {
      logits.push_back(static_cast<float>(patterns(static_cast<std::uint64_t>(i))));
    }
    for (const std::int64_t row : {0, 1}) {
      INFO("n=" << n << " row=" << row);
      CHECK(cpu::sample_token(logits.data() + row * n, n, row, 5, kLogitScale, scratch) ==
            reference_token(patterns, n, row, 5));
    }
  }
}

TEST_CASE("these kernels run on the machine that they were built on", "[calibrate]") {
  CHECK(cpu::missing_instructions().empty());
  CHECK_FALSE(std::string(cpu::instruction_set()).empty());
}
