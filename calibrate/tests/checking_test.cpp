// Checks pass what the references say and fail when any of what they look at is off.
#include "checking.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

/// Results in memory, of which one may be spoilt.
struct Stored {
  std::vector<double> values;

  Results read() const {
    return [this](std::int64_t first, std::int64_t count) {
      return std::vector<double>(values.begin() + first, values.begin() + first + count);
    };
  }
};

/// Right results pass; with the first, the last, or all of them spoilt they do not.
template <class CheckOf>
void passes_only_if_right(const std::vector<double>& right, const CheckOf& check) {
  REQUIRE_FALSE(right.empty());
  Stored stored{right};
  CHECK(check(stored.read()) <= 1);
  for (const std::size_t at : {std::size_t{0}, right.size() - 1}) {
    INFO("result " << at << " of " << right.size());
    stored.values = right;
    stored.values[at] += 1 + std::abs(right[at]);
    CHECK(check(stored.read()) > 1);
    stored.values[at] = std::numeric_limits<double>::quiet_NaN();
    CHECK(check(stored.read()) > 1);
  }
  stored.values.assign(right.size(), 0);
  CHECK(check(stored.read()) > 1);
}

const Operand kX{DType::kBf16, 4, 0}, kY{DType::kBf16, 4, 1 << 16}, kZ{DType::kBf16, 4, 1 << 17};

Case checked_attention(std::int64_t batch, std::int64_t context) {
  Case c;
  c.batch = batch;
  c.context = context;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.block_size = 8;
  return c;
}

}  // namespace

TEST_CASE("the checker tells rounding from error", "[calibrate]") {
  Checker fine;
  fine.dot(100.3, {100, 10});
  fine.value(1.001, 1, 0.01, 0);
  fine.equal(7, 7);
  CHECK(fine.worst() <= 1);
  Checker wrong;
  wrong.dot(104, {100, 10});
  CHECK(wrong.worst() > 1);
  Checker nothing;
  nothing.value(std::nan(""), 1, 0.01, 0.01);
  CHECK(nothing.worst() > 1);
  Checker other;
  other.equal(6, 7);
  CHECK(other.worst() > 1);
}

TEST_CASE("a checker that has compared nothing is not satisfied", "[calibrate]") {
  CHECK(Checker().worst() > 1);
  Case empty;
  CHECK(check_tokens(empty, Stored{}.read(), kX) > 1);
  CHECK(check_stream(Kernel::kCopy, 0, Stored{}.read(), kX) > 1);
}

TEST_CASE("an error that a later comparison does not have is remembered", "[calibrate]") {
  Checker checker;
  checker.value(2, 1, 0.1, 0);
  checker.value(1, 1, 0.1, 0);
  CHECK(checker.worst() == Approx(10));
}

TEST_CASE("indices are spread from the first to the last", "[calibrate]") {
  CHECK(spread_indices(10, 4) == std::vector<std::int64_t>{0, 3, 6, 9});
  CHECK(spread_indices(2, 4) == std::vector<std::int64_t>{0, 1});
  CHECK(spread_indices(1, 2) == std::vector<std::int64_t>{0});
  CHECK(spread_indices(0, 5).empty());
  const auto many = spread_indices(151'936, 1000);
  CHECK(many.size() == 1000);
  CHECK(many.back() == 151'935);
}

TEST_CASE("stored results are read as what they stand for", "[calibrate]") {
  const std::uint16_t halves[] = {0x3f80, 0xc000, 0x3fc0};
  CHECK(results_of(halves)(1, 2) == std::vector<double>{-2, 1.5});
  const float floats[] = {0.5f, -0.25f};
  CHECK(results_of(floats)(0, 2) == std::vector<double>{0.5, -0.25});
  const std::int32_t tokens[] = {7, -3, 2147483647};
  CHECK(results_of(tokens)(1, 2) == std::vector<double>{-3, 2147483647.0});
}

TEST_CASE("products are checked against their dot products", "[calibrate]") {
  Case c;
  c.m = 3;
  c.n = 5;
  c.k = 64;
  std::vector<double> right;
  for (std::int64_t row = 0; row < c.m; ++row) {
    for (std::int64_t column = 0; column < c.n; ++column) {
      right.push_back(reference_dot(kX, kY, c.k, row, column).value);
    }
  }
  passes_only_if_right(right, [&](const Results& out) { return check_gemm(c, out, kX, kY); });
  for (const DType type : {DType::kFp16, DType::kInt8, DType::kInt4}) {
    INFO(name_of(type));
    c.dtype = type;
    c.k = 256;
    c.n = 30;  // more rows than are looked at
    const Operand weights{type, 4, 0};
    right.clear();
    for (std::int64_t row = 0; row < c.n; ++row) {
      right.push_back(reference_gemv(weights, kX, kZ, c.k, row).value);
    }
    passes_only_if_right(right,
                         [&](const Results& out) { return check_gemv(c, out, weights, kX, kZ); });
  }
}

TEST_CASE("an 8-bit product is checked with quantised activations", "[calibrate]") {
  Case c;
  c.m = c.n = 2;
  c.k = 128;
  const Operand weights{DType::kInt8, 4, 0};
  std::vector<double> right, plain;
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t column = 0; column < 2; ++column) {
      right.push_back(reference_dot(kX, weights, c.k, row, column).value);
      double sum = 0;
      for (std::int64_t i = 0; i < c.k; ++i) {
        sum += kX(static_cast<std::uint64_t>(row * c.k + i)) *
               weights(static_cast<std::uint64_t>(column * c.k + i));
      }
      plain.push_back(sum);
    }
  }
  const Stored quantised_results{right}, plain_results{plain};
  CHECK(check_gemm(c, quantised_results.read(), kX, weights) <= 1);
  CHECK(check_gemm(c, plain_results.read(), kX, weights) > 1);
}

TEST_CASE("attention is checked by sequence and head", "[calibrate]") {
  for (const std::int64_t batch : {1, 3}) {
    Case c = checked_attention(batch, 20);
    c.kernel = Kernel::kDecodeAttention;
    const PagedOperands paged = paged_operands(c, 1 << 18, 4);
    std::vector<double> right;
    for (std::int64_t s = 0; s < batch; ++s) {
      for (std::int64_t head = 0; head < c.heads; ++head) {
        const auto out =
            reference_decode(c, paged.q, {paged.k, paged.v, &paged.tables.front()}, s, head);
        right.insert(right.end(), out.begin(), out.end());
      }
    }
    passes_only_if_right(right, [&](const Results& out) { return check_decode(c, out, paged); });
  }
  const Case c = checked_attention(1, 9);
  const PromptOperands o = prompt_operands(c, kX);
  std::vector<double> right;
  for (std::int64_t token = 0; token < c.context; ++token) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const auto out = reference_prefill(c, o.q, o.k, o.v, 0, token, head);
      right.insert(right.end(), out.begin(), out.end());
    }
  }
  const auto check = [&](const Results& out) { return check_prefill(c, out, o, 0.01); };
  CHECK(check(Stored{right}.read()) <= 1);
  // Token t is looked at in head t % heads.
  for (const std::size_t token : {std::size_t{0}, std::size_t{2}, std::size_t{8}}) {
    Stored spoilt{right};
    spoilt.values[(token * 4 + token % 4) * 16 + 3] += 1;
    CHECK(check(spoilt.read()) > 1);
  }
}

TEST_CASE("decode attention that follows another table is wrong", "[calibrate]") {
  const Case c = checked_attention(2, 40);
  PagedOperands paged = paged_operands(c, 1 << 18, 4);
  REQUIRE(paged.tables.size() > 1);
  std::vector<double> other;
  for (std::int64_t s = 0; s < c.batch; ++s) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const auto out = reference_decode(c, paged.q, {paged.k, paged.v, &paged.tables[1]}, s, head);
      other.insert(other.end(), out.begin(), out.end());
    }
  }
  CHECK(check_decode(c, Stored{other}.read(), paged) > 1);
}

TEST_CASE("row-wise kernels are checked element by element", "[calibrate]") {
  Case c;
  c.m = 3;
  c.n = 32;
  c.heads = 2;
  c.kv_heads = 1;
  c.head_dim = 16;
  std::vector<double> norm, rope, gate, probabilities;
  for (std::int64_t row = 0; row < c.m; ++row) {
    const auto normed = reference_rms_norm(kX, kY, kZ, c.n, row);
    norm.insert(norm.end(), normed.begin(), normed.end());
    for (std::int64_t head = 0; head < 3; ++head) {
      const auto turned = reference_rope(kX, c.head_dim, 3, row, head);
      rope.insert(rope.end(), turned.begin(), turned.end());
    }
    for (std::int64_t i = 0; i < c.n; ++i) gate.push_back(reference_silu_mul(kX, c.n, row, i));
    const auto p = reference_softmax({DType::kFp32, 4, 0}, c.n, row);
    probabilities.insert(probabilities.end(), p.begin(), p.end());
  }
  passes_only_if_right(norm,
                       [&](const Results& out) { return check_rms_norm(c, out, kX, kY, kZ); });
  passes_only_if_right(rope, [&](const Results& out) { return check_rope(c, out, kX); });
  passes_only_if_right(gate, [&](const Results& out) { return check_silu_mul(c, out, kX); });
  passes_only_if_right(probabilities, [&](const Results& out) {
    return check_softmax(c, out, {DType::kFp32, 4, 0});
  });
}

TEST_CASE("drawn tokens must be the very ones", "[calibrate]") {
  Case c;
  c.m = 3;
  c.n = 500;
  const Operand logits{DType::kFp32, 4, 0};
  std::vector<double> right;
  for (std::int64_t row = 0; row < c.m; ++row) {
    right.push_back(static_cast<double>(reference_token(logits, c.n, row, kNoiseSeed)));
  }
  CHECK(check_tokens(c, Stored{right}.read(), logits) <= 1);
  for (std::size_t row = 0; row < 3; ++row) {
    Stored spoilt{right};
    spoilt.values[row] += 1;
    CHECK(check_tokens(c, spoilt.read(), logits) > 1);
  }
}

TEST_CASE("streams are checked against their sources", "[calibrate]") {
  constexpr std::int64_t kCount = 3000;  // more than are looked at
  const Operand from{DType::kFp32, 4, 4096};
  for (const Kernel kernel : {Kernel::kWrite, Kernel::kCopy, Kernel::kTriad}) {
    INFO(name_of(kernel));
    std::vector<double> right;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      right.push_back(kernel == Kernel::kWrite  ? kWritten
                      : kernel == Kernel::kCopy ? from(i)
                                                : from(i) + 3 * from(kCount + i));
    }
    passes_only_if_right(
        right, [&](const Results& out) { return check_stream(kernel, kCount, out, from); });
  }
}
