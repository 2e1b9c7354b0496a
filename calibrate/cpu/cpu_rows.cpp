#include "cpu/cpu_rows.hpp"

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
        return check_rms_norm(c, results_of(static_cast<const std::uint16_t*>(arena.output())),
                              operands(0), after(operands(0), bytes), weight);
      });
}

std::unique_ptr<Experiment> rope_on_cpu(const Case& case_, CpuArena& arena, ThreadPool& pool,
                                        MakeExperiment make) {
  const Case c = case_;
  const std::int64_t heads = c.heads + c.kv_heads;
  const auto table = std::make_shared<std::vector<float>>(rope_table(c));
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
        return check_rope(c, results_of(static_cast<const std::uint16_t*>(arena.output())),
                          arena.slot(DType::kBf16, bytes, 0));
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
        return check_silu_mul(c, results_of(static_cast<const std::uint16_t*>(arena.output())),
                              arena.slot(DType::kBf16, bytes, 0));
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
        return check_softmax(c, results_of(static_cast<const float*>(arena.output())),
                             arena.slot(DType::kFp32, bytes, 0));
      });
}

std::unique_ptr<Experiment> sampling_on_cpu(const Case& case_, CpuArena& arena, ThreadPool& pool,
                                            MakeExperiment make) {
  const Case c = case_;
  const std::int64_t bytes = 4 * c.m * c.n;
  return make(
      pool,
      [=, &arena, &pool](std::int64_t r) {
        const auto* x = arena.at<float>(arena.slot(DType::kFp32, bytes, r));
        auto* tokens = static_cast<std::int32_t*>(arena.output());
        pool.run(c.m, 1, [&](std::int64_t begin, std::int64_t end) {
          std::vector<std::int32_t> scratch;
          for (std::int64_t row = begin; row < end; ++row) {
            tokens[row] = static_cast<std::int32_t>(
                cpu::sample_token(x + row * c.n, c.n, row, kNoiseSeed, kLogitScale, scratch));
          }
        });
      },
      [=, &arena] {
        return check_tokens(c, results_of(static_cast<const std::int32_t*>(arena.output())),
                            arena.slot(DType::kFp32, bytes, 0));
      });
}

}  // namespace servesim::calibrate
