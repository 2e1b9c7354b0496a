// Every kernel of the CPU backend computes what its reference says, at sizes with remainders too.
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "backend.hpp"
#include "core/error.hpp"
#include "cpu/cpu_experiments.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

namespace {

struct SmallMachine {
  ThreadPool pool{2};
  CpuArena arena{pool, 64 << 20, 3};
  double worst(const Case& c) { return prepare_on_cpu(c, arena, pool)->check(); }
};

Case sized(Kernel kernel, DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
  Case c;
  c.kernel = kernel;
  c.dtype = type;
  c.m = m;
  c.n = n;
  c.k = k;
  return c;
}

}  // namespace

TEST_CASE("products on the cores are right for all row counts", "[calibrate]") {
  SmallMachine machine;
  for (const std::int64_t m : {1, 2, 3, 5, 6, 7, 13, 64}) {
    for (const std::int64_t n : {16, 80, 200}) {
      INFO("m=" << m << " n=" << n);
      CHECK(machine.worst(sized(Kernel::kGemm, DType::kBf16, m, n, 1040)) <= 1);
    }
  }
  for (const DType type : {DType::kBf16, DType::kFp16, DType::kInt8, DType::kInt4}) {
    INFO(name_of(type));
    CHECK(machine.worst(sized(Kernel::kGemv, type, 1, 48, 256)) <= 1);
    CHECK(machine.worst(sized(Kernel::kGemv, type, 1, 1024, 1024)) <= 1);
  }
}

TEST_CASE("attention on the cores is right", "[calibrate]") {
  SmallMachine machine;
  Case c;
  c.head_dim = 128;
  for (const std::int64_t context : {1, 17, 33, 200}) {
    for (const std::int64_t block_size : {8, 16, 32}) {
      c.kernel = Kernel::kDecodeAttention;
      c.batch = 3;
      c.context = context;
      c.heads = 8;
      c.kv_heads = 2;
      c.block_size = block_size;
      INFO("context=" << context << " block_size=" << block_size);
      CHECK(machine.worst(c) <= 1);
    }
    c.kernel = Kernel::kPrefillAttention;
    c.batch = 2;
    CHECK(machine.worst(c) <= 1);
  }
  c.head_dim = 256;
  CHECK_THROWS_AS(machine.worst(c), servesim::InputError);
}

TEST_CASE("row-wise kernels and streams on the cores are right", "[calibrate]") {
  SmallMachine machine;
  for (const std::int64_t m : {1, 3, 9}) {
    Case c = sized(Kernel::kRmsNorm, DType::kBf16, m, 512, 0);
    c.heads = 4;
    c.kv_heads = 2;
    c.head_dim = 128;
    CHECK(machine.worst(c) <= 1);
    c.kernel = Kernel::kSiluMul;
    CHECK(machine.worst(c) <= 1);
    c.kernel = Kernel::kRope;
    CHECK(machine.worst(c) <= 1);
    CHECK(machine.worst(sized(Kernel::kSoftmax, DType::kFp32, m, 32000, 0)) <= 1);
    CHECK(machine.worst(sized(Kernel::kTopKTopP, DType::kFp32, m, 32000, 0)) <= 1);
  }
  for (const Kernel kernel : {Kernel::kRead, Kernel::kWrite, Kernel::kCopy, Kernel::kTriad}) {
    Case c;
    c.kernel = kernel;
    c.bytes = 3 << 20;
    INFO(name_of(kernel));
    CHECK(machine.worst(c) <= 1);
  }
  CHECK(machine.worst(sized(Kernel::kLaunch, DType::kBf16, 0, 0, 0)) <= 1);
  CHECK(machine.worst(sized(Kernel::kPeakFma, DType::kFp32, 0, 16 << 20, 0)) <= 1);
}

TEST_CASE("a GPU's kernels and oversized operands are refused", "[calibrate]") {
  SmallMachine machine;
  CHECK_THROWS_AS(machine.worst(sized(Kernel::kGraph, DType::kBf16, 0, 300, 0)),
                  servesim::InputError);
  const auto large = sized(Kernel::kGemm, DType::kBf16, 1, 65536, 1024);
  CHECK_THROWS_AS(machine.worst(large), servesim::InputError);
}

TEST_CASE("an arena holds what operands say, beyond the patterns' period too", "[calibrate]") {
  SmallMachine machine;
  const auto* values = static_cast<const std::uint16_t*>(machine.arena.of(DType::kBf16));
  const Operand all{DType::kBf16, machine.arena.seed(), 0};
  for (const std::uint64_t i :
       {std::uint64_t{0}, std::uint64_t{77}, kPatternPeriod - 1, kPatternPeriod,
        2 * kPatternPeriod + 5, std::uint64_t{(32 << 20) - 1}}) {
    CHECK(from_bf16(values[i]) == all(i));
  }
}

TEST_CASE("calls rotate over operands that do not share memory", "[calibrate]") {
  SmallMachine machine;
  const auto first = machine.arena.slot(DType::kBf16, 1 << 20, 0);
  const auto second = machine.arena.slot(DType::kBf16, 1 << 20, 1);
  CHECK(second.offset - first.offset >= 1 << 20);
  CHECK(machine.arena.slot(DType::kBf16, 1 << 20, 64).offset == first.offset);  // all around
  CHECK(machine.arena.slot(DType::kBf16, 16, 5, 1 << 20).offset >= 1 << 20);
}

TEST_CASE("the pool does every part once, whatever the number of threads", "[calibrate]") {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const std::int64_t count : {0, 1, 7, 100, 12345}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      pool.run(count, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const auto& times : seen) REQUIRE(times == 1);
    }
  }
}

TEST_CASE("the CPU backend describes this machine", "[calibrate]") {
  const auto backend = make_cpu_backend(1, 1);
  CHECK(backend->environment().backend == "cpu");
  CHECK(backend->environment().units == 1);
  CHECK(backend->environment().memory_bytes > 1e9);
  CHECK_FALSE(backend->limits().gpu);
  CHECK(backend->limits().arena_bytes >= 128 << 20);
}

TEST_CASE("results of an earlier kernel are not taken for those of the next", "[calibrate]") {
  SmallMachine machine;
  auto* out = static_cast<std::uint16_t*>(machine.arena.output());
  out[0] = out[1000] = 0x3f80;
  machine.arena.forget_results();
  CHECK(std::isnan(from_bf16(out[0])));
  CHECK(std::isnan(from_bf16(out[1000])));
  Case c;
  c.kernel = Kernel::kWrite;
  c.bytes = 1 << 20;
  CHECK(machine.worst(c) <= 1);
  const auto* floats = static_cast<const float*>(machine.arena.output());
  CHECK(floats[0] == 1.5f);
  prepare_on_cpu(c, machine.arena, machine.pool);  // prepared, not run: nothing stays
  CHECK(std::isnan(floats[0]));
}

TEST_CASE("a timed kernel takes time, more of it for more work", "[calibrate]") {
  SmallMachine machine;
  const auto time_of = [&](std::int64_t n) {
    const auto experiment =
        prepare_on_cpu(sized(Kernel::kPeakFma, DType::kFp32, 0, n, 0), machine.arena, machine.pool);
    double least = experiment->time_us(1);
    for (int i = 0; i < 5; ++i) least = std::min(least, experiment->time_us(1));
    return least;
  };
  const double small = time_of(4 << 20), large = time_of(64 << 20);
  CHECK(small > 0);
  CHECK(large > 4 * small);
}

TEST_CASE("a pool counts the time of its parts and of nothing else", "[calibrate]") {
  ThreadPool pool(2);
  const double before = pool.busy_us();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(pool.busy_us() == before);
  pool.run(4, 1, [](std::int64_t, std::int64_t) {
    volatile double sum = 0;
    for (int i = 0; i < 200'000; ++i) sum = sum + i;
  });
  CHECK(pool.busy_us() > before);
}
