// Products, attention and row-wise kernels, each with its operands and its check.
#include "cuda_experiments.hpp"

#include "core/error.hpp"
#include "gemm_lt.hpp"
#include "layout.hpp"

namespace servesim::calibrate::cuda {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

std::unique_ptr<Experiment> gemv(const Case& c, CudaArena& arena) {
  const auto weight_bytes = static_cast<std::int64_t>(
      bytes_of(c.dtype, static_cast<std::uint64_t>(c.n) * static_cast<std::uint64_t>(c.k)));
  const Operand x{c.dtype == DType::kFp16 ? DType::kFp16 : DType::kBf16, arena.seed(), 0};
  const auto weights = [=, &arena](std::int64_t r) { return arena.slot(c.dtype, weight_bytes, r); };
  const auto scales = [=, &arena](std::int64_t r) {
    return arena.slot(DType::kBf16, scale_bytes(c), r, kScalesFrom);
  };
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_gemv(c.dtype, arena.at(weights(r)), arena.at(x), arena.at(scales(r)), arena.output(),
                    c.n, c.k, stream);
      },
      [=, &arena] {
        return check_gemv(c, arena.results<std::uint16_t>(), weights(0), x, scales(0));
      });
}

std::unique_ptr<Experiment> gemm(const Case& c, CudaArena& arena) {
  const auto product = std::make_shared<LtGemm>(c.dtype, c.m, c.n, c.k);
  const bool eight = c.dtype == DType::kFp8 || c.dtype == DType::kInt8;
  const auto weight_bytes = static_cast<std::int64_t>(bytes_of(c.dtype, 1)) * c.n * c.k;
  const DType input_type = eight ? DType::kBf16 : c.dtype;
  const auto input = [=, &arena](std::int64_t r) {
    return arena.slot(input_type, 2 * c.m * c.k, r);
  };
  const auto weights = [=, &arena](std::int64_t r) { return arena.slot(c.dtype, weight_bytes, r); };
  // The quantised activations follow the results.
  const std::int64_t quantised_at = aligned((c.dtype == DType::kInt8 ? 4 : 2) * c.m * c.n);
  if (quantised_at + c.m * c.k > arena.bytes()) {
    throw InputError("the results do not fit into memory");
  }
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const void* a = arena.at(input(r));
        if (eight) {
          launch_quantise(c.dtype, a, arena.output(quantised_at), c.m * c.k, stream);
          a = arena.output(quantised_at);
        }
        product->launch(a, arena.at(weights(r)), arena.output(), arena.workspace(), stream);
      },
      [=, &arena] {
        const Results out = c.dtype == DType::kInt8 ? arena.results<std::int32_t>()
                                                    : arena.results<std::uint16_t>();
        return check_gemm(c, out, input(0), weights(0));
      });
}

/// What all calls of a decode case share but the block table.
DecodeArguments decode_arguments(const Case& c, CudaArena& arena, const PagedOperands& operands) {
  DecodeArguments a{};
  a.q = arena.at(operands.q);
  a.k = arena.at(operands.k);
  a.v = arena.at(operands.v);
  a.batch = static_cast<int>(c.batch);
  a.context = static_cast<int>(c.context);
  a.heads = static_cast<int>(c.heads);
  a.kv_heads = static_cast<int>(c.kv_heads);
  a.block_size = static_cast<int>(c.block_size);
  a.blocks_per_sequence = static_cast<int>(kv_blocks_per_sequence(c));
  a.splits = decode_splits(a.batch, a.kv_heads, a.context, arena.gpu().sms);
  const std::int64_t rows = c.batch * c.heads;
  const std::int64_t partial_at = aligned(2 * rows * c.head_dim);
  a.out = arena.output();
  a.partial = arena.output<float>(partial_at);
  a.sums = arena.output<float>(partial_at + 4 * rows * a.splits * c.head_dim);
  return a;
}

std::unique_ptr<Experiment> decode(const Case& c, CudaArena& arena) {
  const auto operands =
      std::make_shared<PagedOperands>(paged_operands(c, arena.bytes(), arena.seed()));
  std::vector<std::int32_t> all;
  for (const auto& table : operands->tables) all.insert(all.end(), table.begin(), table.end());
  const auto tables = std::make_shared<DeviceMemory>(uploaded(all, arena.stream()));
  const auto count = static_cast<std::int64_t>(operands->tables.size());
  const auto entries = static_cast<std::int64_t>(operands->tables.front().size());
  const DecodeArguments shared = decode_arguments(c, arena, *operands);
  return make_experiment(
      c, arena,
      [=](std::int64_t r, cudaStream_t stream) {
        DecodeArguments a = shared;
        a.table = static_cast<const std::int32_t*>(tables->get()) + r % count * entries;
        launch_decode(a, stream);
      },
      [=, &arena] { return check_decode(c, arena.results<std::uint16_t>(), *operands); });
}

std::unique_ptr<Experiment> prefill(const Case& c, CudaArena& arena) {
  const auto operands = [=, &arena](std::int64_t r) {
    return prompt_operands(c, arena.slot(DType::kBf16, prompt_bytes(c), r));
  };
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const PromptOperands o = operands(r);
        launch_prefill(
            {arena.at(o.q), arena.at(o.k), arena.at(o.v), arena.output(), static_cast<int>(c.batch),
             static_cast<int>(c.context), static_cast<int>(c.heads), static_cast<int>(c.kv_heads)},
            stream);
      },
      [=, &arena] {
        constexpr double kTolerated = 0.02;  // weights are rounded to bf16 before they meet values
        return check_prefill(c, arena.results<std::uint16_t>(), operands(0), kTolerated);
      });
}

std::unique_ptr<Experiment> rms_norm(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 2 * c.m * c.n;
  const Operand weight{DType::kBf16, arena.seed(), 0};
  const auto x = [=, &arena](std::int64_t r) {
    return arena.slot(DType::kBf16, 2 * bytes, r, 1 << 20);
  };
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_rms_norm(arena.at(x(r)), arena.at(after(x(r), bytes)), arena.at(weight),
                        arena.output(bytes), arena.output(), c.m, c.n, stream);
      },
      [=, &arena] {
        return check_rms_norm(c, arena.results<std::uint16_t>(), x(0), after(x(0), bytes), weight);
      });
}

std::unique_ptr<Experiment> rope(const Case& c, CudaArena& arena) {
  const std::int64_t heads = c.heads + c.kv_heads;
  const std::int64_t bytes = 2 * c.m * heads * c.head_dim;
  const auto table = std::make_shared<DeviceMemory>(uploaded(rope_table(c), arena.stream()));
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_rope(arena.at(arena.slot(DType::kBf16, bytes, r)),
                    static_cast<const float*>(table->get()), arena.output(), c.m, heads, stream);
      },
      [=, &arena] {
        return check_rope(c, arena.results<std::uint16_t>(), arena.slot(DType::kBf16, bytes, 0));
      });
}

std::unique_ptr<Experiment> silu_mul(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 4 * c.m * c.n;
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_silu_mul(arena.at(arena.slot(DType::kBf16, bytes, r)), arena.output(), c.m, c.n,
                        stream);
      },
      [=, &arena] {
        return check_silu_mul(c, arena.results<std::uint16_t>(),
                              arena.slot(DType::kBf16, bytes, 0));
      });
}

std::unique_ptr<Experiment> softmax(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 4 * c.m * c.n;
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_softmax(arena.at<float>(arena.slot(DType::kFp32, bytes, r)), arena.output<float>(),
                       c.m, c.n, static_cast<float>(kLogitScale), stream);
      },
      [=, &arena] {
        return check_softmax(c, arena.results<float>(), arena.slot(DType::kFp32, bytes, 0));
      });
}

std::unique_ptr<Experiment> sampling(const Case& c, CudaArena& arena) {
  const std::int64_t bytes = 4 * c.m * c.n;
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        launch_sample(arena.at<float>(arena.slot(DType::kFp32, bytes, r)),
                      arena.output<std::int32_t>(), c.m, c.n, static_cast<float>(kLogitScale),
                      kNoiseSeed, stream);
      },
      [=, &arena] {
        return check_tokens(c, arena.results<std::int32_t>(), arena.slot(DType::kFp32, bytes, 0));
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
