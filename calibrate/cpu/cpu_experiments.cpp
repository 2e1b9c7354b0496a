#include "cpu/cpu_experiments.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>

#include "checking.hpp"
#include "core/error.hpp"
#include "cpu/cpu_attention.hpp"
#include "cpu/cpu_kernels.hpp"
#include "cpu/cpu_rows.hpp"

namespace servesim::calibrate {
namespace {

constexpr std::int64_t kStreamGrain = 4096;

/// A kernel as a function of the rotation, and how to check what it left in `output`. Timed by the
/// pool's CPU clock, which other tenants of the cores do not advance; `wall` takes the wall clock.
class CpuExperiment final : public Experiment {
 public:
  using Call = std::function<void(std::int64_t)>;
  using Check = std::function<double()>;
  CpuExperiment(ThreadPool& pool, Call call, Check check, bool wall)
      : pool_(pool), call_(std::move(call)), check_(std::move(check)), wall_(wall) {}

  double check() override {
    call_(0);
    return check_();
  }
  double time_us(int calls) override {
    const double busy = pool_.busy_us();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call_(++rotation_);
    const auto spent = std::chrono::steady_clock::now() - start;
    const double wall_us = std::chrono::duration<double, std::micro>(spent).count();
    return (wall_ ? wall_us : pool_.busy_us() - busy) / calls;
  }

 private:
  ThreadPool& pool_;
  Call call_;
  Check check_;
  bool wall_;
  std::int64_t rotation_ = 0;
};

std::unique_ptr<Experiment> make(ThreadPool& pool, CpuExperiment::Call call,
                                 CpuExperiment::Check check) {
  return std::make_unique<CpuExperiment>(pool, std::move(call), std::move(check), false);
}

/// Builds the experiment of one case. Lives only while it does; what the calls need they hold.
class Builder {
 public:
  Builder(const Case& c, CpuArena& arena, ThreadPool& pool) : c_(c), arena_(arena), pool_(pool) {}

  std::unique_ptr<Experiment> build() {
    switch (c_.kernel) {
      case Kernel::kRead:
        return read();
      case Kernel::kWrite:
      case Kernel::kCopy:
      case Kernel::kTriad:
        return streams();
      case Kernel::kPeakFma:
        return peak();
      case Kernel::kGemv:
        return gemv();
      case Kernel::kGemm:
      case Kernel::kSustainedGemm:
        return gemm();
      case Kernel::kRmsNorm:
        return rms_norm_on_cpu(c_, arena_, pool_, make);
      case Kernel::kRope:
        return rope_on_cpu(c_, arena_, pool_, make);
      case Kernel::kSiluMul:
        return silu_mul_on_cpu(c_, arena_, pool_, make);
      case Kernel::kLaunch:
        return launch();
      case Kernel::kSoftmax:
        return softmax_on_cpu(c_, arena_, pool_, make);
      case Kernel::kTopKTopP:
        return sampling_on_cpu(c_, arena_, pool_, make);
      case Kernel::kDecodeAttention:
        return decode_on_cpu(c_, arena_, pool_, make);
      case Kernel::kPrefillAttention:
        return prefill_on_cpu(c_, arena_, pool_, make);
      default:
        throw InputError("not a kernel of the CPU backend");
    }
  }

 private:
  std::unique_ptr<Experiment> read() {
    auto total = std::make_shared<std::atomic<std::uint64_t>>(0);
    CpuArena& arena = arena_;
    ThreadPool& pool = pool_;
    const std::int64_t bytes = c_.bytes;
    return make(
        pool,
        [=, &arena, &pool](std::int64_t r) {
          const char* from = arena.at<char>(arena.slot(DType::kFp32, bytes, r));
          *total = 0;
          pool.run(bytes, kStreamGrain, [&](std::int64_t begin, std::int64_t end) {
            *total += cpu::read(from + begin, end - begin);
          });
        },
        [=, &arena] {
          // Each thread's lanes add modulo 2^32, so the whole is compared modulo 2^32.
          const auto* words = arena.at<std::uint32_t>(arena.slot(DType::kFp32, bytes, 0));
          std::uint32_t sum = 0;
          for (std::int64_t i = 0; i < bytes / 4; ++i) sum += words[i];
          Checker checker;
          checker.equal(static_cast<std::uint32_t>(*total), sum);
          return checker.worst();
        });
  }

  std::unique_ptr<Experiment> streams() {
    CpuArena& arena = arena_;
    ThreadPool& pool = pool_;
    const Kernel kernel = c_.kernel;
    const std::int64_t parts = kernel == Kernel::kTriad ? 3 : kernel == Kernel::kCopy ? 2 : 1;
    const std::int64_t bytes = c_.bytes / parts / 64 * 64;
    // Both sources of a triad come from one slot, one after the other.
    const std::int64_t input = std::max<std::int64_t>(parts - 1, 1) * bytes;
    return make(
        pool,
        [=, &arena, &pool](std::int64_t r) {
          const auto* from = arena.at<float>(arena.slot(DType::kFp32, input, r));
          auto* to =
              static_cast<float*>(arena.output()) + arena.slot(DType::kFp32, bytes, r).offset / 4;
          pool.run(bytes / 4, kStreamGrain, [&](std::int64_t begin, std::int64_t end) {
            const std::int64_t count = end - begin;
            if (kernel == Kernel::kWrite) return cpu::write(to + begin, 4 * count, kWritten);
            if (kernel == Kernel::kCopy) return cpu::copy(to + begin, from + begin, 4 * count);
            cpu::triad(to + begin, from + begin, from + bytes / 4 + begin, count);
          });
        },
        [=, &arena] {
          return check_stream(kernel, bytes / 4,
                              results_of(static_cast<const float*>(arena.output())),
                              arena.slot(DType::kFp32, input, 0));
        });
  }

  std::unique_ptr<Experiment> peak() {
    ThreadPool& pool = pool_;
    const std::int64_t fmas = c_.n;
    auto error = std::make_shared<std::atomic<double>>(std::nan(""));
    return make(
        pool,
        [=, &pool](std::int64_t) {
          pool.run(fmas, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
            const std::int64_t count = end - begin;
            error->store(cpu::peak_fma(count) - cpu::peak_fma_result(count));
          });
        },
        [=] {
          Checker checker;
          checker.value(error->load(), 0, 0, 0.01);
          return checker.worst();
        });
  }

  std::unique_ptr<Experiment> gemv() {
    if (c_.dtype == DType::kBf16) return gemm();
    CpuArena& arena = arena_;
    ThreadPool& pool = pool_;
    const Case c = c_;
    const auto weight_bytes =
        static_cast<std::int64_t>(bytes_of(c.dtype, static_cast<std::uint64_t>(c.n * c.k)));
    const Operand x{c.dtype == DType::kFp16 ? DType::kFp16 : DType::kBf16, arena.seed(), 0};
    const auto scales = [=, &arena](std::int64_t r) {
      return arena.slot(DType::kBf16, scale_bytes(c), r, kScalesFrom);
    };
    const auto activations = std::make_shared<std::vector<float>>(gemv_input(c, x));
    return make(
        pool,
        [=, &arena, &pool](std::int64_t r) {
          // May fill their regions: not inside a parallel part.
          const void* w = arena.at<char>(arena.slot(c.dtype, weight_bytes, r));
          const auto* s = arena.at<std::uint16_t>(scales(r));
          auto* out = static_cast<std::uint16_t*>(arena.output());
          pool.run(c.n, 16, [&](std::int64_t begin, std::int64_t end) {
            const float* in = activations->data();
            if (c.dtype == DType::kFp16) {
              cpu::gemv_fp16(static_cast<const std::uint16_t*>(w), in, out, c.k, begin, end);
            } else if (c.dtype == DType::kInt8) {
              cpu::gemv_int8(static_cast<const std::int8_t*>(w), s, in, out, c.k, begin, end);
            } else {
              cpu::gemv_int4(static_cast<const std::uint8_t*>(w), s, in, out, c.k, begin, end);
            }
          });
        },
        [=, &arena] {
          return check_gemv(c, results_of(static_cast<const std::uint16_t*>(arena.output())),
                            arena.slot(c.dtype, weight_bytes, 0), x, scales(0));
        });
  }

  /// Activations as floats; of int4 weights, which are packed in pairs, the even ones first.
  static std::vector<float> gemv_input(const Case& c, const Operand& x) {
    std::vector<float> values;
    const std::int64_t half = c.k / 2;
    for (std::int64_t i = 0; i < c.k; ++i) {
      const bool packed = c.dtype == DType::kInt4;
      const std::int64_t from = !packed ? i : i < half ? 2 * i : 2 * (i - half) + 1;
      values.push_back(static_cast<float>(x(static_cast<std::uint64_t>(from))));
    }
    return values;
  }

  std::unique_ptr<Experiment> gemm() {
    CpuArena& arena = arena_;
    ThreadPool& pool = pool_;
    Case c = c_;
    c.m = std::max<std::int64_t>(c.m, 1);
    const std::int64_t m = c.m;
    const Operand input{DType::kBf16, arena.seed(), 0};
    const bool openblas = cpu::has_openblas() && m > 4;
    auto activations = std::make_shared<std::vector<float>>(static_cast<std::size_t>(m * c.k));
    return make(
        pool,
        [=, &arena, &pool](std::int64_t r) {
          // The conversion of the activations is part of the product, as a packing would be.
          const auto* x = arena.at<std::uint16_t>(input);
          pool.run(m * c.k, kStreamGrain, [&](std::int64_t begin, std::int64_t end) {
            cpu::bf16_to_floats(x + begin, activations->data() + begin, end - begin);
          });
          const Operand weights = arena.slot(DType::kBf16, 2 * c.n * c.k, r);
          const cpu::Gemm g{activations->data(),
                            arena.at<std::uint16_t>(weights),
                            static_cast<std::uint16_t*>(arena.output()),
                            m,
                            c.n,
                            c.k};
          pool.run(c.n, openblas ? 64 : 16, [&](std::int64_t begin, std::int64_t end) {
            openblas ? cpu::gemm_openblas(g, begin, end) : cpu::gemm(g, begin, end);
          });
        },
        [=, &arena] {
          return check_gemm(c, results_of(static_cast<const std::uint16_t*>(arena.output())), input,
                            arena.slot(DType::kBf16, 2 * c.n * c.k, 0));
        });
  }

  std::unique_ptr<Experiment> launch() {
    ThreadPool& pool = pool_;
    auto count = std::make_shared<std::atomic<int>>(0);
    const int threads = pool.size();
    return std::make_unique<CpuExperiment>(
        pool,
        [=, &pool](std::int64_t) {
          *count = 0;
          pool.run(threads, 1, [&](std::int64_t begin, std::int64_t end) {
            *count += static_cast<int>(end - begin);
          });
        },
        [=] {
          Checker checker;
          checker.equal(*count, threads);
          return checker.worst();
        },
        true);
  }

  const Case& c_;
  CpuArena& arena_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Experiment> prepare_on_cpu(const Case& c, CpuArena& arena, ThreadPool& pool) {
  arena.forget_results();
  return Builder(c, arena, pool).build();
}

}  // namespace servesim::calibrate
