#include "cpu/cpu_attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "checking.hpp"
#include "core/error.hpp"
#include "cpu/cpu_kernels.hpp"

namespace servesim::calibrate {
namespace {

/// Queries `first`, `first + step`, ... as floats over sqrt(head_dim).
void load_queries(const std::uint16_t* from, std::int64_t step, int count, std::int64_t head_dim,
                  float* to) {
  const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
  for (int q = 0; q < count; ++q) {
    cpu::bf16_to_floats(from + q * step, to + q * head_dim, head_dim);
  }
  for (std::int64_t i = 0; i < count * head_dim; ++i) to[i] *= scale;
}

void store_queries(const float* from, std::int64_t step, int count, std::int64_t head_dim,
                   std::uint16_t* to) {
  for (int q = 0; q < count; ++q) {
    for (std::int64_t i = 0; i < head_dim; ++i) to[q * step + i] = to_bf16(from[q * head_dim + i]);
  }
}

struct Scratch {
  std::vector<const std::uint16_t*> k, v;
  alignas(64) float q[cpu::kMostQueries * cpu::kMostHeadDim];
  alignas(64) float out[cpu::kMostQueries * cpu::kMostHeadDim];
};

void require_size(const Case& c) {
  if (c.head_dim % 16 != 0 || c.head_dim > cpu::kMostHeadDim ||
      c.heads / c.kv_heads > cpu::kMostQueries) {
    throw InputError("head sizes up to 128 and up to 32 query heads a KV head are measured");
  }
}

}  // namespace

std::unique_ptr<Experiment> decode_on_cpu(const Case& c_, CpuArena& arena, ThreadPool& pool,
                                          MakeExperiment make) {
  require_size(c_);
  const Case c = c_;
  const std::int64_t token = c.kv_heads * c.head_dim;
  // Queries first, then as many blocks of K, then of V, as the region holds.
  const auto q_bytes = static_cast<std::int64_t>(1 << 20);
  const std::int64_t blocks = (arena.bytes() - q_bytes) / 2 / (2 * c.block_size * token);
  const Operand q{DType::kBf16, arena.seed(), 0};
  const Operand k{DType::kBf16, arena.seed(), static_cast<std::uint64_t>(q_bytes)};
  Operand v = k;
  v.offset += static_cast<std::uint64_t>(blocks * 2 * c.block_size * token);
  constexpr int kRotations = 8;
  auto tables = std::make_shared<std::vector<std::vector<std::int32_t>>>(
      block_tables(c, blocks, arena.seed(), kRotations));
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const auto* queries = arena.at<std::uint16_t>(q);
        const auto *k_cache = arena.at<std::uint16_t>(k), *v_cache = arena.at<std::uint16_t>(v);
        auto* out = static_cast<std::uint16_t*>(arena.output());
        const std::vector<std::int32_t>& table =
            (*tables)[static_cast<std::size_t>(r % kRotations)];
        pool.run(c.batch * c.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
          thread_local Scratch s;
          const int group = static_cast<int>(c.heads / c.kv_heads);
          const std::vector<std::int64_t> visible(static_cast<std::size_t>(group), c.context);
          for (std::int64_t pair = begin; pair < end; ++pair) {
            const std::int64_t sequence = pair / c.kv_heads, kv_head = pair % c.kv_heads;
            s.k.clear();
            s.v.clear();
            for (std::int64_t t = 0; t < c.context; ++t) {
              const std::int64_t block = table[static_cast<std::size_t>(
                  sequence * kv_blocks_per_sequence(c) + t / c.block_size)];
              const std::int64_t at =
                  (block * c.block_size + t % c.block_size) * token + kv_head * c.head_dim;
              s.k.push_back(k_cache + at);
              s.v.push_back(v_cache + at);
            }
            const std::int64_t first = (sequence * c.heads + kv_head * group) * c.head_dim;
            load_queries(queries + first, c.head_dim, group, c.head_dim, s.q);
            cpu::attention({s.q, group, c.head_dim, s.k.data(), s.v.data(), visible.data(), s.out});
            store_queries(s.out, c.head_dim, group, c.head_dim, out + first);
          }
        });
      },
      [=, &arena] {
        const auto* out = static_cast<const std::uint16_t*>(arena.output());
        Checker checker;
        for (const std::int64_t sequence : spread_indices(c.batch, 2)) {
          for (const std::int64_t head : spread_indices(c.heads, 3)) {
            const auto want = reference_decode(c, q, {k, v, tables->data()}, sequence, head);
            for (std::int64_t i = 0; i < c.head_dim; ++i) {
              checker.value(from_bf16(out[(sequence * c.heads + head) * c.head_dim + i]),
                            want[static_cast<std::size_t>(i)], 0.01, 0.005);
            }
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> prefill_on_cpu(const Case& c_, CpuArena& arena, ThreadPool& pool,
                                           MakeExperiment make) {
  require_size(c_);
  const Case c = c_;
  const std::int64_t q_bytes = 2 * c.batch * c.context * c.heads * c.head_dim;
  const std::int64_t kv_bytes = 2 * c.batch * c.context * c.kv_heads * c.head_dim;
  const auto operands = [=, &arena](std::int64_t r) {
    return arena.slot(DType::kBf16, q_bytes + 2 * kv_bytes, r);
  };
  const auto after = [](Operand from, std::int64_t bytes) {
    from.offset += static_cast<std::uint64_t>(bytes);
    return from;
  };
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const Operand q = operands(r), k = after(q, q_bytes), v = after(k, kv_bytes);
        const auto* queries = arena.at<std::uint16_t>(q);
        const auto *keys = arena.at<std::uint16_t>(k), *values = arena.at<std::uint16_t>(v);
        auto* out = static_cast<std::uint16_t*>(arena.output());
        constexpr int kRows = 16;  // queries of one head that share the keys' conversion
        const std::int64_t tiles = (c.context + kRows - 1) / kRows;
        pool.run(c.batch * c.heads * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
          thread_local Scratch s;
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t head = i / tiles % c.heads, prompt = i / tiles / c.heads;
            const std::int64_t first = i % tiles * kRows;
            const int rows = static_cast<int>(std::min<std::int64_t>(kRows, c.context - first));
            const std::int64_t kv_head = head / (c.heads / c.kv_heads);
            std::int64_t visible[kRows];
            for (int row = 0; row < rows; ++row) visible[row] = first + row + 1;
            s.k.clear();
            s.v.clear();
            for (std::int64_t t = 0; t < first + rows; ++t) {
              const std::int64_t at =
                  ((prompt * c.context + t) * c.kv_heads + kv_head) * c.head_dim;
              s.k.push_back(keys + at);
              s.v.push_back(values + at);
            }
            const std::int64_t step = c.heads * c.head_dim;
            const std::int64_t at = (prompt * c.context + first) * step + head * c.head_dim;
            load_queries(queries + at, step, rows, c.head_dim, s.q);
            cpu::attention({s.q, rows, c.head_dim, s.k.data(), s.v.data(), visible, s.out});
            store_queries(s.out, step, rows, c.head_dim, out + at);
          }
        });
      },
      [=, &arena] {
        const auto* out = static_cast<const std::uint16_t*>(arena.output());
        const Operand q = operands(0), k = after(q, q_bytes), v = after(k, kv_bytes);
        Checker checker;
        for (const std::int64_t token : spread_indices(c.context, 5)) {
          const std::int64_t prompt = token % c.batch, head = token % c.heads;
          const auto want = reference_prefill(c, q, k, v, prompt, token, head);
          for (std::int64_t i = 0; i < c.head_dim; ++i) {
            const std::int64_t at =
                ((prompt * c.context + token) * c.heads + head) * c.head_dim + i;
            checker.value(from_bf16(out[at]), want[static_cast<std::size_t>(i)], 0.01, 0.005);
          }
        }
        return checker.worst();
      });
}

}  // namespace servesim::calibrate
