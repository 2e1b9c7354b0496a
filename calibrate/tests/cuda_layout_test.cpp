// The CUDA kernels' index arithmetic, without a GPU: operands of tensor cores against the PTX
// ISA's own statement of them, one warp of prefill attention step by step, paged gathers.
#include "cuda/layout.hpp"

#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "patterns.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;
using namespace servesim::calibrate::cuda;

namespace {

constexpr int kWarp = 32;

/// What a warp holds of A, B and C (m16n8k16): [lane][value].
using WarpA = std::array<std::array<double, 8>, kWarp>;
using WarpB = std::array<std::array<double, 4>, kWarp>;
using WarpC = std::array<std::array<double, 4>, kWarp>;

/// mma.sync.m16n8k16 as the PTX ISA states it: element i of A is in row groupID for 0 <= i < 2 and
/// 4 <= i < 6, else groupID + 8; in column threadID_in_group * 2 + (i & 1), and 8 more for i >= 4.
/// Of B: row threadID_in_group * 2 + (i & 1), 8 more for i >= 2; column groupID. Of C: row groupID
/// for i < 2, else groupID + 8; column threadID_in_group * 2 + (i & 1).
void layout_mma(WarpC& c, const WarpA& a, const WarpB& b) {
  double left[16][16], right[16][8];
  for (int lane = 0; lane < kWarp; ++lane) {
    const int group = lane >> 2, thread = lane % 4;
    for (int i = 0; i < 8; ++i) {
      const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      left[row][thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)] = a[lane][i];
    }
    for (int i = 0; i < 4; ++i) {
      right[thread * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] = b[lane][i];
    }
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    const int group = lane >> 2, thread = lane % 4;
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? group : group + 8, column = thread * 2 + (i & 1);
      for (int k = 0; k < 16; ++k) c[lane][i] += left[row][k] * right[k][column];
    }
  }
}

/// ldmatrix.x2.trans: lane l's address is row l % 8 of matrix l / 8; a lane gets, of matrix m, the
/// two values of column lane / 4 in rows 2 (lane % 4) and the next.
template <class RowOf>
WarpB layout_load_transposed(const RowOf& row_of) {
  WarpB b{};
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) {
      b[lane][i] = row_of(i / 2 * 8 + 2 * (lane % 4) + i % 2)[lane / 4];
    }
  }
  return b;
}

double layout_value(std::uint64_t seed, int i) {
  return 2.0 * random_unit(seed, static_cast<std::uint64_t>(i)) - 1;
}

}  // namespace

TEST_CASE("fragments of tensor-core operands hold every element once", "[calibrate]") {
  std::set<std::pair<int, int>> a, b, c;
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 8; ++i) a.insert({a_row(lane, i / 2), a_column(lane, i / 2) + i % 2});
    for (int i = 0; i < 4; ++i) b.insert({b_row(lane, i / 2) + i % 2, b_column(lane)});
    for (int i = 0; i < 4; ++i) c.insert({c_row(lane, i), c_column(lane, i)});
  }
  CHECK(a.size() == 256);
  CHECK(b.size() == 128);
  CHECK(c.size() == 128);
  CHECK(*a.rbegin() == std::pair{15, 15});
  CHECK(*b.rbegin() == std::pair{15, 7});
  CHECK(*c.rbegin() == std::pair{15, 7});
}

TEST_CASE("a product through the kernel's fragments is the product", "[calibrate]") {
  double left[16][16], right[16][8];
  for (int i = 0; i < 256; ++i) left[i / 16][i % 16] = layout_value(1, i);
  for (int i = 0; i < 128; ++i) right[i / 8][i % 8] = layout_value(2, i);
  WarpA a{};
  WarpB b{};
  WarpC c{};
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 8; ++i) {
      a[lane][i] = left[a_row(lane, i / 2)][a_column(lane, i / 2) + i % 2];
    }
    for (int i = 0; i < 4; ++i) b[lane][i] = right[b_row(lane, i / 2) + i % 2][b_column(lane)];
  }
  layout_mma(c, a, b);
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) {
      double want = 0;
      for (int k = 0; k < 16; ++k) want += left[c_row(lane, i)][k] * right[k][c_column(lane, i)];
      CHECK(c[lane][i] == Approx(want).margin(1e-12));
    }
  }
}

TEST_CASE("a warp of prefill attention: scores, repacked as an operand, times values",
          "[calibrate]") {
  constexpr int kKeys = 64, kDim = 32;  // the kernel's tile, fewer dimensions
  double q[16][kDim], keys[kKeys][kDim], values[kKeys][kDim];
  for (int i = 0; i < 16 * kDim; ++i) q[i / kDim][i % kDim] = layout_value(3, i);
  for (int i = 0; i < kKeys * kDim; ++i) keys[i / kDim][i % kDim] = layout_value(4, i);
  for (int i = 0; i < kKeys * kDim; ++i) values[i / kDim][i % kDim] = layout_value(5, i);

  std::array<WarpC, kKeys / 8> scores{};
  for (int step = 0; step < kDim / 16; ++step) {
    WarpA query{};
    for (int lane = 0; lane < kWarp; ++lane) {
      for (int i = 0; i < 8; ++i) {
        query[lane][i] = q[a_row(lane, i / 2)][16 * step + a_column(lane, i / 2) + i % 2];
      }
    }
    for (int n = 0; n < kKeys / 8; ++n) {
      WarpB key{};
      for (int lane = 0; lane < kWarp; ++lane) {
        for (int i = 0; i < 4; ++i) {
          key[lane][i] = keys[8 * n + b_column(lane)][16 * step + b_row(lane, i / 2) + i % 2];
        }
      }
      layout_mma(scores[n], query, key);
    }
  }
  // A causal mask on the diagonal tile, for a warp whose first query is row 16 of it.
  for (int n = 0; n < kKeys / 8; ++n) {
    for (int lane = 0; lane < kWarp; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const bool seen = 8 * n + c_column(lane, i) <= 16 + c_row(lane, i);
        scores[n][lane][i] = seen ? std::exp(scores[n][lane][i]) : 0;
      }
    }
  }
  std::array<WarpC, kDim / 8> out{};
  for (int step = 0; step < kKeys / 16; ++step) {
    WarpA weights{};
    for (int lane = 0; lane < kWarp; ++lane) {
      for (int i = 0; i < 8; ++i) {
        const int part = i / 2;
        weights[lane][i] = scores[2 * step + packed_tile(part)][lane][packed_from(part) + i % 2];
      }
    }
    for (int n = 0; n < kDim / 8; ++n) {
      const WarpB value =
          layout_load_transposed([&](int row) { return values[16 * step + row] + 8 * n; });
      layout_mma(out[n], weights, value);
    }
  }
  for (int n = 0; n < kDim / 8; ++n) {
    for (int lane = 0; lane < kWarp; ++lane) {
      for (int i = 0; i < 4; ++i) {
        double want = 0;
        for (int key = 0; key <= 16 + c_row(lane, i); ++key) {
          double score = 0;
          for (int d = 0; d < kDim; ++d) score += q[c_row(lane, i)][d] * keys[key][d];
          want += std::exp(score) * values[key][8 * n + c_column(lane, i)];
        }
        CHECK(out[n][lane][i] == Approx(want).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("a paged gather finds every token where its block lies", "[calibrate]") {
  constexpr int kKvHeads = 3, kTokens = 45;
  for (const int block_size : {8, 16, 32}) {
    const int blocks = (kTokens + block_size - 1) / block_size;
    std::vector<std::int32_t> table;
    for (int i = 0; i < blocks; ++i) table.push_back((5 * i + 2) % 7);
    // A cache that holds in each row who lies there.
    std::vector<std::array<int, 2>> cache(static_cast<std::size_t>(7 * block_size * kKvHeads),
                                          {-1, -1});
    for (int token = 0; token < kTokens; ++token) {
      for (int head = 0; head < kKvHeads; ++head) {
        std::size_t row = static_cast<std::size_t>(table[token / block_size]);
        row = row * static_cast<std::size_t>(block_size) + token % block_size;
        cache[row * kKvHeads + head] = {token, head};
      }
    }
    for (int token = 0; token < kTokens; ++token) {
      for (int head = 0; head < kKvHeads; ++head) {
        const auto row = paged_row(table.data(), token, block_size, kKvHeads, head);
        CHECK(cache[static_cast<std::size_t>(row)] == std::array<int, 2>{token, head});
      }
    }
  }
}

TEST_CASE("splits of a context cover it, each with tokens, more where SMs idle", "[calibrate]") {
  for (const int context : {1, 127, 128, 129, 2048, 2049, 8191, 32768}) {
    for (const int batch : {1, 4, 64, 256}) {
      const int splits = decode_splits(batch, 8, context, 132);
      const int per_split = tokens_per_split(context, splits);
      CHECK(splits >= 1);
      CHECK(splits <= 64);
      CHECK((splits - 1) * per_split < context);  // the last one is not empty
      CHECK(splits * per_split >= context);
    }
  }
  CHECK(decode_splits(1, 8, 32768, 132) > decode_splits(16, 8, 32768, 132));
  CHECK(decode_splits(256, 8, 32768, 132) == 1);
  CHECK(decode_splits(1, 8, 100, 132) == 1);
}
