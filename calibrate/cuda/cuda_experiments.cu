// Products, attention, row-wise kernels and streams, each with its operands and its check.
#include "cuda_experiments.hpp"

#include <cmath>
#include <stdexcept>

#include "checking.hpp"
#include "core/error.hpp"
#include "gemm_lt.hpp"
#include "layout.hpp"
#include "text.hpp"

namespace servesim::calibrate::cuda {
namespace {

float half_of(std::uint16_t bits) {
  return from_bf16(bits);
}

Operand after(Operand from, std::int64_t bytes) {
  from.offset += static_cast<std::uint64_t>(bytes);
  return from;
}

std::unique_ptr<Experiment> gemv(const Case& c, CudaArena& arena) {
  const auto weight_bytes = static_cast<std::int64_t>(
      bytes_of(c.dtype, static_cast<std::uint64_t>(c.n) * static_cast<std::uint64_t>(c.k)));
  const Operand x{c.dtype == DType::kFp16 ? DType::kFp16 : DType::kBf16, arena.seed(), 0};
  const Operand scales{DType::kBf16, arena.seed(), 1 << 20};
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_gemv(c.dtype, arena.at(arena.slot(c.dtype, weight_bytes, r)), arena.at(x),
                    arena.at(scales), arena.output(), c.n, c.k, stream);
      },
      [=, &arena] {
        const auto out = arena.results<std::uint16_t>(c.n);
        Checker checker;
        for (const std::int64_t row : spread_indices(c.n, 24)) {
          checker.dot(half_of(out[static_cast<std::size_t>(row)]),
                      reference_gemv(arena.slot(c.dtype, weight_bytes, 0), x, scales, c.k, row));
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> gemm(const Case& c, CudaArena& arena) {
  const auto product = std::make_shared<LtGemm>(c.dtype, c.m, c.n, c.k);
  const bool eight = c.dtype == DType::kFp8 || c.dtype == DType::kInt8;
  const auto element = static_cast<std::int64_t>(bytes_of(c.dtype, 1));
  const std::int64_t weight_bytes = element * c.n * c.k;
  const DType input_type = eight ? DType::kBf16 : c.dtype;
  const std::int64_t input_bytes = 2 * c.m * c.k;
  // The quantised activations follow the results.
  const std::int64_t result_bytes = (c.dtype == DType::kInt8 ? 4 : 2) * c.m * c.n;
  const std::int64_t quantised_at = (result_bytes + 255) / 256 * 256;
  if (quantised_at + c.m * c.k > arena.bytes())
    throw InputError("the results do not fit into memory");
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const void* a = arena.at(arena.slot(input_type, input_bytes, r));
        if (eight) {
          launch_quantise(c.dtype, a, arena.output(quantised_at), c.m * c.k, stream);
          a = arena.output(quantised_at);
        }
        product->launch(a, arena.at(arena.slot(c.dtype, weight_bytes, r)), arena.output(),
                        arena.workspace(), stream);
      },
      [=, &arena] {
        const Operand a = arena.slot(input_type, input_bytes, 0);
        const Operand w = arena.slot(c.dtype, weight_bytes, 0);
        Checker checker;
        for (const std::int64_t row : spread_indices(c.m, 5)) {
          const auto integers = c.dtype == DType::kInt8
                                    ? arena.results<std::int32_t>(c.n, 4 * row * c.n)
                                    : std::vector<std::int32_t>();
          const auto halves = c.dtype == DType::kInt8
                                  ? std::vector<std::uint16_t>()
                                  : arena.results<std::uint16_t>(c.n, 2 * row * c.n);
          for (const std::int64_t column : spread_indices(c.n, 7)) {
            const auto at = static_cast<std::size_t>(column);
            checker.dot(integers.empty() ? half_of(halves[at]) : integers[at],
                        reference_dot(a, w, c.k, row, column));
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> decode(const Case& c, CudaArena& arena) {
  const std::int64_t token = c.kv_heads * c.head_dim;
  const std::int64_t q_bytes = 8 << 20;
  const std::int64_t cache_blocks = (arena.bytes() - q_bytes) / 2 / (2 * c.block_size * token);
  const Operand q{DType::kBf16, arena.seed(), 0};
  const Operand k{DType::kBf16, arena.seed(), static_cast<std::uint64_t>(q_bytes)};
  const Operand v = after(k, cache_blocks * 2 * c.block_size * token);
  constexpr int kRotations = 4;
  const auto tables = std::make_shared<std::vector<std::vector<std::int32_t>>>(
      block_tables(c, cache_blocks, arena.seed(), kRotations));
  const auto table_bytes = static_cast<std::int64_t>((4 * (*tables)[0].size() + 255) / 256 * 256);
  const auto memory = std::make_shared<DeviceMemory>(allocate(kRotations * table_bytes));
  for (int r = 0; r < kRotations; ++r) {
    const auto& table = (*tables)[static_cast<std::size_t>(r)];
    require(cudaMemcpy(static_cast<char*>(memory->get()) + r * table_bytes, table.data(),
                       4 * table.size(), cudaMemcpyHostToDevice),
            "copying a block table");
  }
  const int splits = decode_splits(static_cast<int>(c.batch), static_cast<int>(c.kv_heads),
                                   static_cast<int>(c.context), arena.sms);
  const std::int64_t rows = c.batch * c.heads;
  const std::int64_t partial_at = (2 * rows * c.head_dim + 255) / 256 * 256;
  const std::int64_t sums_at = partial_at + 4 * rows * splits * c.head_dim;
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        DecodeArguments a{};
        a.q = arena.at(q);
        a.k = arena.at(k);
        a.v = arena.at(v);
        a.table = reinterpret_cast<const std::int32_t*>(static_cast<const char*>(memory->get()) +
                                                        r % kRotations * table_bytes);
        a.out = arena.output();
        a.partial = arena.output<float>(partial_at);
        a.sums = arena.output<float>(sums_at);
        a.batch = static_cast<int>(c.batch);
        a.context = static_cast<int>(c.context);
        a.heads = static_cast<int>(c.heads);
        a.kv_heads = static_cast<int>(c.kv_heads);
        a.block_size = static_cast<int>(c.block_size);
        a.blocks_per_sequence = static_cast<int>(kv_blocks_per_sequence(c));
        a.splits = splits;
        launch_decode(a, stream);
      },
      [=, &arena] {
        const auto out = arena.results<std::uint16_t>(rows * c.head_dim);
        Checker checker;
        for (const std::int64_t sequence : spread_indices(c.batch, 2)) {
          for (const std::int64_t head : spread_indices(c.heads, 3)) {
            const auto want = reference_decode(c, q, {k, v, tables->data()}, sequence, head);
            for (std::int64_t i = 0; i < c.head_dim; ++i) {
              const auto at =
                  static_cast<std::size_t>((sequence * c.heads + head) * c.head_dim + i);
              checker.value(half_of(out[at]), want[static_cast<std::size_t>(i)], 0.01, 0.005);
            }
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> prefill(const Case& c, CudaArena& arena) {
  const std::int64_t q_bytes = 2 * c.batch * c.context * c.heads * c.head_dim;
  const std::int64_t kv_bytes = 2 * c.batch * c.context * c.kv_heads * c.head_dim;
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const Operand q = arena.slot(DType::kBf16, q_bytes + 2 * kv_bytes, r);
        launch_prefill(
            {arena.at(q), arena.at(after(q, q_bytes)), arena.at(after(q, q_bytes + kv_bytes)),
             arena.output(), static_cast<int>(c.batch), static_cast<int>(c.context),
             static_cast<int>(c.heads), static_cast<int>(c.kv_heads)},
            stream);
      },
      [=, &arena] {
        const Operand q = arena.slot(DType::kBf16, q_bytes + 2 * kv_bytes, 0);
        Checker checker;
        for (const std::int64_t token : spread_indices(c.context, 5)) {
          const std::int64_t prompt = token % c.batch, head = token % c.heads;
          const auto want = reference_prefill(c, q, after(q, q_bytes), after(q, q_bytes + kv_bytes),
                                              prompt, token, head);
          const auto out = arena.results<std::uint16_t>(
              c.head_dim, 2 * ((prompt * c.context + token) * c.heads + head) * c.head_dim);
          for (std::size_t i = 0; i < out.size(); ++i) {
            // Weights are rounded to bf16 before they meet the values.
            checker.value(half_of(out[i]), want[i], 0.02, 0.01);
          }
        }
        return checker.worst();
      });
}

/// Compares `count` elements of some rows of a bf16 result.
template <class Reference>
double check_rows(CudaArena& arena, std::int64_t rows, std::int64_t n, const Reference& reference) {
  Checker checker;
  for (const std::int64_t row : spread_indices(rows, 4)) {
    const auto out = arena.results<std::uint16_t>(n, 2 * row * n);
    for (const std::int64_t i : spread_indices(n, 100)) {
      checker.value(half_of(out[static_cast<std::size_t>(i)]), reference(row, i), 0.01, 0.01);
    }
  }
  return checker.worst();
}

std::unique_ptr<Experiment> rms_norm(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 2 * c.m * c.n;
  const Operand weight{DType::kBf16, arena.seed(), 0};
  const auto operands = [=, &arena](std::int64_t r) {
    return arena.slot(DType::kBf16, 2 * bytes, r, 1 << 20);
  };
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const Operand x = operands(r);
        launch_rms_norm(arena.at(x), arena.at(after(x, bytes)), arena.at(weight),
                        arena.output(bytes), arena.output(), c.m, c.n, stream);
      },
      [=, &arena] {
        const Operand x = operands(0);
        std::int64_t last = -1;
        std::vector<double> want;
        return check_rows(arena, c.m, c.n, [&](std::int64_t row, std::int64_t i) {
          if (row != last) want = reference_rms_norm(x, after(x, bytes), weight, c.n, row);
          last = row;
          return want[static_cast<std::size_t>(i)];
        });
      });
}

std::unique_ptr<Experiment> rope(const Case& c, CudaArena& arena) {
  const std::int64_t heads = c.heads + c.kv_heads, n = heads * c.head_dim, half = c.head_dim / 2;
  const std::int64_t bytes = 2 * c.m * n;
  std::vector<float> table;
  for (std::int64_t t = 0; t < c.m; ++t) {
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      const double angle = rope_angle(t, i % half, c.head_dim);
      table.push_back(static_cast<float>(i < half ? std::cos(angle) : std::sin(angle)));
    }
  }
  const auto memory =
      std::make_shared<DeviceMemory>(allocate(static_cast<std::int64_t>(4 * table.size())));
  require(cudaMemcpy(memory->get(), table.data(), 4 * table.size(), cudaMemcpyHostToDevice),
          "copying cosines");
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_rope(arena.at(arena.slot(DType::kBf16, bytes, r)),
                    static_cast<const float*>(memory->get()), arena.output(), c.m, heads, stream);
      },
      [=, &arena] {
        return check_rows(arena, c.m, n, [&](std::int64_t row, std::int64_t i) {
          return reference_rope(arena.slot(DType::kBf16, bytes, 0), c.head_dim, heads, row,
                                i / c.head_dim)[static_cast<std::size_t>(i % c.head_dim)];
        });
      });
}

std::unique_ptr<Experiment> silu_mul(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 4 * c.m * c.n;
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_silu_mul(arena.at(arena.slot(DType::kBf16, bytes, r)), arena.output(), c.m, c.n,
                        stream);
      },
      [=, &arena] {
        return check_rows(arena, c.m, c.n, [&](std::int64_t row, std::int64_t i) {
          return reference_silu_mul(arena.slot(DType::kBf16, bytes, 0), c.n, row, i);
        });
      });
}

std::unique_ptr<Experiment> softmax(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 4 * c.m * c.n;
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_softmax(arena.at<float>(arena.slot(DType::kFp32, bytes, r)), arena.output<float>(),
                       c.m, c.n, static_cast<float>(kLogitScale), stream);
      },
      [=, &arena] {
        Checker checker;
        for (const std::int64_t row : spread_indices(c.m, 2)) {
          const auto want = reference_softmax(arena.slot(DType::kFp32, bytes, 0), c.n, row);
          const auto out = arena.results<float>(c.n, 4 * row * c.n);
          for (const std::int64_t i : spread_indices(c.n, 100)) {
            const auto at = static_cast<std::size_t>(i);
            checker.value(out[at], want[at], 1e-3, 1e-9);
          }
        }
        return checker.worst();
      });
}

std::unique_ptr<Experiment> sampling(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 4 * c.m * c.n;
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_sample(arena.at<float>(arena.slot(DType::kFp32, bytes, r)),
                      arena.output<std::int32_t>(), c.m, c.n, static_cast<float>(kLogitScale),
                      kNoiseSeed, stream);
      },
      [=, &arena] {
        const auto tokens = arena.results<std::int32_t>(c.m);
        Checker checker;
        for (const std::int64_t row : spread_indices(c.m, 3)) {
          checker.equal(tokens[static_cast<std::size_t>(row)],
                        reference_token(arena.slot(DType::kFp32, bytes, 0), c.n, row, kNoiseSeed));
        }
        return checker.worst();
      });
}

}  // namespace

std::unique_ptr<Experiment> prepare_products(const Case& c, CudaArena& arena) {
  return c.kernel == Kernel::kGemv ? gemv(c, arena) : gemm(c, arena);
}

std::unique_ptr<Experiment> prepare_attention(const Case& c, CudaArena& arena) {
  if (c.head_dim != 128) throw InputError("attention is measured at head size 128");
  return c.kernel == Kernel::kDecodeAttention ? decode(c, arena) : prefill(c, arena);
}

std::unique_ptr<Experiment> prepare_rows(const Case& c, CudaArena& arena) {
  switch (c.kernel) {
    case Kernel::kRmsNorm:
      return rms_norm(c, arena);
    case Kernel::kRope:
      return rope(c, arena);
    case Kernel::kSiluMul:
      return silu_mul(c, arena);
    case Kernel::kSoftmax:
      return softmax(c, arena);
    default:
      return sampling(c, arena);
  }
}

}  // namespace servesim::calibrate::cuda
