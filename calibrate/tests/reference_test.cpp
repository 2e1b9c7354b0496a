// The patterns are what they claim, and the references agree with closed forms.
#include "reference.hpp"

#include <cmath>
#include <set>

#include "support/catch.hpp"

using namespace servesim::calibrate;

TEST_CASE("patterns are in range, never all alike, and decode as their type does", "[calibrate]") {
  for (const DType type : {DType::kBf16, DType::kFp16, DType::kFp8, DType::kFp32}) {
    std::set<double> values;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const double v = pattern_value(type, pattern(type, 7, i));
      CHECK(std::abs(v) >= 0.25);
      CHECK(std::abs(v) < 2);
      values.insert(v);
    }
    CHECK(values.size() >= (type == DType::kFp8 ? 48u : 600u));
    CHECK(*values.begin() < -1);
    CHECK(*values.rbegin() > 1);
  }
  std::set<double> whole;
  for (std::uint64_t i = 0; i < 20000; ++i)
    whole.insert(pattern_value(DType::kInt8, pattern(DType::kInt8, 7, i)));
  CHECK(whole.size() == 254);
  CHECK(whole.count(0) == 0);
  CHECK(pattern_value(DType::kInt4, 0x9f) == 7);
  CHECK(pattern_value(DType::kInt4, 0x9f, true) == 1);
  CHECK(pattern_value(DType::kBf16, 0x3fc0) == 1.5);
  CHECK(pattern_value(DType::kFp16, 0xbe00) == -1.5);
  CHECK(pattern_value(DType::kFp8, 0x38) == 1);  // e4m3
}

TEST_CASE("bf16 rounds to nearest even", "[calibrate]") {
  CHECK(from_bf16(to_bf16(1.0f)) == 1.0f);
  CHECK(to_bf16(1.00390625f) == 0x3f80);  // half way, down to even
  CHECK(to_bf16(1.01171875f) == 0x3f82);  // half way, up to even
  CHECK(from_bf16(to_bf16(-3.14159f)) == Approx(-3.14159f).epsilon(0.004));
}

TEST_CASE("activations are quantised as fp8 e4m3 and as scaled integers", "[calibrate]") {
  CHECK(quantised(DType::kFp8, 1.0625) == 1.0);   // half way to 1.125, to even
  CHECK(quantised(DType::kFp8, 1.1875) == 1.25);  // half way, to even
  CHECK(quantised(DType::kFp8, -0.3) == Approx(-0.3125));
  CHECK(quantised(DType::kInt8, 1.0) == 64);
  CHECK(quantised(DType::kBf16, 1.1) == 1.1);
}

TEST_CASE("a dot product is the sum of its terms", "[calibrate]") {
  const Operand a{DType::kBf16, 1, 0}, b{DType::kBf16, 1, 4096};
  const Dot dot = reference_dot(a, b, 3, 2, 5);
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const double term = a(6 + i) * b(15 + i);
    sum += term;
    squares += term * term;
  }
  CHECK(dot.value == Approx(sum));
  CHECK(dot.norm == Approx(std::sqrt(squares)));
  CHECK(b(0) == a(2048));  // the offset counts bytes
}

TEST_CASE("attention over one token is its value, and softmax sums to one", "[calibrate]") {
  Case c;
  c.batch = 1;
  c.context = 1;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 8;
  c.block_size = 16;
  const Operand q{DType::kBf16, 1, 0}, k{DType::kBf16, 1, 1000}, v{DType::kBf16, 1, 2000};
  const std::vector<std::int32_t> table{3};
  const auto out = reference_decode(c, q, {k, v, &table}, 0, 3);
  for (std::uint64_t i = 0; i < 8; ++i) CHECK(out[i] == Approx(v((3 * 16 * 2 + 1) * 8 + i)));
  double sum = 0;
  for (const double p : reference_softmax({DType::kFp32, 2, 0}, 50, 1)) sum += p;
  CHECK(sum == Approx(1));
}

TEST_CASE("prefill of the last token is decode over contiguous blocks", "[calibrate]") {
  Case c;
  c.batch = 1;
  c.context = 24;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.block_size = 8;
  const Operand k{DType::kBf16, 1, 1 << 16}, v{DType::kBf16, 1, 1 << 17};
  const Operand q{DType::kBf16, 1, 0};
  Operand last = q;  // the queries of the last token
  last.offset = 2 * 23 * 4 * 16;
  const std::vector<std::int32_t> table{0, 1, 2};
  const auto a = reference_prefill(c, q, k, v, 0, 23, 1);
  const auto b = reference_decode(c, last, {k, v, &table}, 0, 1);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]));
}

TEST_CASE("norm, rotation and gate keep what they must", "[calibrate]") {
  const Operand x{DType::kBf16, 1, 0}, r{DType::kBf16, 1, 4096}, w{DType::kBf16, 1, 8192};
  const auto normed = reference_rms_norm(x, r, w, 64, 1);
  double squares = 0;
  for (std::uint64_t i = 0; i < 64; ++i) squares += normed[i] * normed[i] / (w(i) * w(i));
  CHECK(squares / 64 == Approx(1).epsilon(1e-4));
  const auto still = reference_rope(x, 16, 2, 0, 1);  // position 0 turns nothing
  for (std::uint64_t i = 0; i < 16; ++i) CHECK(still[i] == Approx(x(16 + i)));
  const auto turned = reference_rope(x, 16, 2, 7, 1);
  double before = 0, later = 0;
  for (std::uint64_t i = 0; i < 16; ++i) {
    before += x(15 * 16 + i) * x(15 * 16 + i);
    later += turned[i] * turned[i];
  }
  CHECK(later == Approx(before));
  const double gate = x(0);
  CHECK(reference_silu_mul(x, 8, 0, 0) == Approx(gate / (1 + std::exp(-gate)) * x(8)));
}

TEST_CASE("a drawn token is among the largest, and other noise draws others", "[calibrate]") {
  const Operand logits{DType::kFp32, 5, 0};
  std::set<std::int64_t> drawn;
  for (std::uint64_t noise = 0; noise < 40; ++noise) {
    const std::int64_t token = reference_token(logits, 1000, 0, noise);
    int above = 0;
    for (std::uint64_t i = 0; i < 1000; ++i)
      above += logits(i) > logits(static_cast<std::uint64_t>(token)) ? 1 : 0;
    CHECK(above < kTopK);
    drawn.insert(token);
  }
  CHECK(drawn.size() > 10);
}
