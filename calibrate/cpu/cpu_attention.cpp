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

/// Operands of one call, and where its results go.
struct Pointers {
  const std::uint16_t *q, *k, *v;
  std::uint16_t* out;
};

void require_size(const Case& c) {
  if (c.head_dim % 16 != 0 || c.head_dim > cpu::kMostHeadDim ||
      c.heads / c.kv_heads > cpu::kMostQueries) {
    throw InputError("head sizes up to 128 and up to 32 query heads a KV head are measured");
  }
}

/// The query heads of one KV head of one sequence over its paged keys.
void decode_pair(const Case& c, const Pointers& p, const std::vector<std::int32_t>& table,
                 std::int64_t sequence, std::int64_t kv_head, Scratch& s) {
  const int group = static_cast<int>(c.heads / c.kv_heads);
  const std::vector<std::int64_t> visible(static_cast<std::size_t>(group), c.context);
  s.k.clear();
  s.v.clear();
  for (std::int64_t t = 0; t < c.context; ++t) {
    const std::int64_t block =
        table[static_cast<std::size_t>(sequence * kv_blocks_per_sequence(c) + t / c.block_size)];
    const std::int64_t row = (block * c.block_size + t % c.block_size) * c.kv_heads + kv_head;
    s.k.push_back(p.k + row * c.head_dim);
    s.v.push_back(p.v + row * c.head_dim);
  }
  const std::int64_t first = (sequence * c.heads + kv_head * group) * c.head_dim;
  load_queries(p.q + first, c.head_dim, group, c.head_dim, s.q);
  cpu::attention({s.q, group, c.head_dim, s.k.data(), s.v.data(), visible.data(), s.out});
  store_queries(s.out, c.head_dim, group, c.head_dim, p.out + first);
}

constexpr std::int64_t kPromptRows = 16;  ///< of one head, which share the keys' conversion

/// Queries [first, first + kPromptRows) of one head of one prompt.
void prefill_tile(const Case& c, const Pointers& p, std::int64_t prompt, std::int64_t head,
                  std::int64_t first, Scratch& s) {
  const int rows = static_cast<int>(std::min(kPromptRows, c.context - first));
  const std::int64_t kv_head = head / (c.heads / c.kv_heads);
  std::int64_t visible[kPromptRows];
  for (int row = 0; row < rows; ++row) visible[row] = first + row + 1;
  s.k.clear();
  s.v.clear();
  for (std::int64_t t = 0; t < first + rows; ++t) {
    const std::int64_t at = ((prompt * c.context + t) * c.kv_heads + kv_head) * c.head_dim;
    s.k.push_back(p.k + at);
    s.v.push_back(p.v + at);
  }
  const std::int64_t step = c.heads * c.head_dim;
  const std::int64_t at = (prompt * c.context + first) * step + head * c.head_dim;
  load_queries(p.q + at, step, rows, c.head_dim, s.q);
  cpu::attention({s.q, rows, c.head_dim, s.k.data(), s.v.data(), visible, s.out});
  store_queries(s.out, step, rows, c.head_dim, p.out + at);
}

Pointers pointers(CpuArena& arena, const Operand& q, const Operand& k, const Operand& v) {
  return {arena.at<std::uint16_t>(q), arena.at<std::uint16_t>(k), arena.at<std::uint16_t>(v),
          static_cast<std::uint16_t*>(arena.output())};
}

}  // namespace

std::unique_ptr<Experiment> decode_on_cpu(const Case& c_, CpuArena& arena, ThreadPool& pool,
                                          MakeExperiment make) {
  require_size(c_);
  const Case c = c_;
  const auto operands =
      std::make_shared<PagedOperands>(paged_operands(c, arena.bytes(), arena.seed()));
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const Pointers p = pointers(arena, operands->q, operands->k, operands->v);
        const auto& table = operands->tables[static_cast<std::size_t>(r) % operands->tables.size()];
        pool.run(c.batch * c.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
          thread_local Scratch s;
          for (std::int64_t pair = begin; pair < end; ++pair) {
            decode_pair(c, p, table, pair / c.kv_heads, pair % c.kv_heads, s);
          }
        });
      },
      [=, &arena] {
        return check_decode(c, results_of(static_cast<const std::uint16_t*>(arena.output())),
                            *operands);
      });
}

std::unique_ptr<Experiment> prefill_on_cpu(const Case& c_, CpuArena& arena, ThreadPool& pool,
                                           MakeExperiment make) {
  require_size(c_);
  const Case c = c_;
  const auto operands = [=, &arena](std::int64_t r) {
    return prompt_operands(c, arena.slot(DType::kBf16, prompt_bytes(c), r));
  };
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const PromptOperands o = operands(r);
        const Pointers p = pointers(arena, o.q, o.k, o.v);
        const std::int64_t tiles = (c.context + kPromptRows - 1) / kPromptRows;
        pool.run(c.batch * c.heads * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
          thread_local Scratch s;
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t head = i / tiles % c.heads, prompt = i / tiles / c.heads;
            prefill_tile(c, p, prompt, head, i % tiles * kPromptRows, s);
          }
        });
      },
      [=, &arena] {
        return check_prefill(c, results_of(static_cast<const std::uint16_t*>(arena.output())),
                             operands(0), 0.01);
      });
}

}  // namespace servesim::calibrate
