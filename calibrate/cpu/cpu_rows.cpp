#include "cpu/cpu_rows.hpp"

#include <cmath>
#include <vector>

#include "checking.hpp"
#include "cpu/cpu_kernels.hpp"

namespace servesim::calibrate {

std::unique_ptr<Experiment> rms_norm_on_cpu(const Case& case_, CpuArena& arena, ThreadPool& pool,
                                            MakeExperiment make) {
  const Case c = case_;
  const std::int64_t bytes = 2 * c.m * c.n;
  const Operand weight{DType::kBf16, arena.seed(), 0};
  const auto operands = [=, &arena](std::int64_t r) {
    return arena.slot(DType::kBf16, 2 * bytes, r, 1 << 20);
  };
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const auto* x = arena.at<std::uint16_t>(operands(r));
        const auto* w = arena.at<std::uint16_t>(weight);
        auto* out = static_cast<std::uint16_t*>(arena.output());
        pool.run(c.m, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            cpu::rms_norm(x + row * c.n, out + c.m * c.n + row * c.n, x + (c.m + row) * c.n, w,
                          out + row * c.n, c.n);
          }
        });
      },
      [=, &arena] {
        const auto* out = static_cast<const std::uint16_t*>(arena.output());
        const Operand x = operands(0);
        Operand residual = x;
        residual.offset += static_cast<std::uint64_t>(bytes);
        Checker checker;
        for (const std::int64_t row : spread_indices(c.m, 4)) {
          const auto want = reference_rms_norm(x, residual, weight, c.n, row);
          for (const std::int64_t i : spread_indices(c.n, 50)) {
            checker.value(from_bf16(out[row * c.n + i]), want[static_cast<std::size_t>(i)], 0.01,
                          0.01);
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> rope_on_cpu(const Case& case_, CpuArena& arena, ThreadPool& pool,
                                        MakeExperiment make) {
  const Case c = case_;
  const std::int64_t heads = c.heads + c.kv_heads, half = c.head_dim / 2;
  auto table = std::make_shared<std::vector<float>>();
  for (std::int64_t t = 0; t < c.m; ++t) {
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      const double angle = rope_angle(t, i % half, c.head_dim);
      table->push_back(static_cast<float>(i < half ? std::cos(angle) : std::sin(angle)));
    }
  }
  const std::int64_t bytes = 2 * c.m * heads * c.head_dim;
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const auto* x = arena.at<std::uint16_t>(arena.slot(DType::kBf16, bytes, r));
        auto* out = static_cast<std::uint16_t*>(arena.output());
        pool.run(c.m, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin * heads; i < end * heads; ++i) {
            cpu::rope(x + i * c.head_dim, table->data() + i / heads * c.head_dim,
                      out + i * c.head_dim, c.head_dim);
          }
        });
      },
      [=, &arena] {
        const auto* out = static_cast<const std::uint16_t*>(arena.output());
        Checker checker;
        for (const std::int64_t token : spread_indices(c.m, 4)) {
          for (const std::int64_t head : spread_indices(heads, 3)) {
            const auto want =
                reference_rope(arena.slot(DType::kBf16, bytes, 0), c.head_dim, heads, token, head);
            for (std::int64_t i = 0; i < c.head_dim; ++i) {
              checker.value(from_bf16(out[(token * heads + head) * c.head_dim + i]),
                            want[static_cast<std::size_t>(i)], 0.01, 0.01);
            }
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> silu_mul_on_cpu(const Case& case_, CpuArena& arena, ThreadPool& pool,
                                            MakeExperiment make) {
  const Case c = case_;
  const std::int64_t bytes = 2 * c.m * 2 * c.n;
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const auto* x = arena.at<std::uint16_t>(arena.slot(DType::kBf16, bytes, r));
        auto* out = static_cast<std::uint16_t*>(arena.output());
        pool.run(c.m, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            cpu::silu_mul(x + 2 * row * c.n, out + row * c.n, c.n);
          }
        });
      },
      [=, &arena] {
        const auto* out = static_cast<const std::uint16_t*>(arena.output());
        Checker checker;
        for (const std::int64_t row : spread_indices(c.m, 8)) {
          for (const std::int64_t i : spread_indices(c.n, 20)) {
            checker.value(from_bf16(out[row * c.n + i]),
                          reference_silu_mul(arena.slot(DType::kBf16, bytes, 0), c.n, row, i), 0.01,
                          0.001);
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> softmax_on_cpu(const Case& case_, CpuArena& arena, ThreadPool& pool,
                                           MakeExperiment make) {
  const Case c = case_;
  const std::int64_t bytes = 4 * c.m * c.n;
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const auto* x = arena.at<float>(arena.slot(DType::kFp32, bytes, r));
        auto* out = static_cast<float*>(arena.output());
        pool.run(c.m, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            cpu::softmax(x + row * c.n, out + row * c.n, c.n, kLogitScale);
          }
        });
      },
      [=, &arena] {
        const auto* out = static_cast<const float*>(arena.output());
        Checker checker;
        for (const std::int64_t row : spread_indices(c.m, 2)) {
          const auto want = reference_softmax(arena.slot(DType::kFp32, bytes, 0), c.n, row);
          for (const std::int64_t i : spread_indices(c.n, 100)) {
            checker.value(out[row * c.n + i], want[static_cast<std::size_t>(i)], 1e-3, 1e-9);
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> sampling_on_cpu(const Case& case_, CpuArena& arena, ThreadPool& pool,
                                            MakeExperiment make) {
  const Case c = case_;
  const std::int64_t bytes = 4 * c.m * c.n;
  auto tokens = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(c.m));
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const auto* x = arena.at<float>(arena.slot(DType::kFp32, bytes, r));
        pool.run(c.m, 1, [&](std::int64_t begin, std::int64_t end) {
          std::vector<std::int32_t> scratch;
          for (std::int64_t row = begin; row < end; ++row) {
            (*tokens)[static_cast<std::size_t>(row)] =
                cpu::sample_token(x + row * c.n, c.n, row, kNoiseSeed, kLogitScale, scratch);
          }
        });
      },
      [=, &arena] {
        Checker checker;
        for (const std::int64_t row : spread_indices(c.m, 3)) {
          checker.equal((*tokens)[static_cast<std::size_t>(row)],
                        reference_token(arena.slot(DType::kFp32, bytes, 0), c.n, row, kNoiseSeed));
        }
        return checker.worst();
      });
}

}  // namespace servesim::calibrate
