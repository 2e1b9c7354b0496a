// Streams over HBM, launches, copies between host, GPU and peer, all-reduces through NCCL.
#include <dlfcn.h>

#include <stdexcept>

#include "checking.hpp"
#include "core/error.hpp"
#include "cuda_experiments.hpp"
#include "text.hpp"

namespace servesim::calibrate::cuda {
namespace {

/// NCCL's C interface as far as it is used, from whatever libnccl.so.2 there is: its header is not
/// part of the CUDA toolkit.
class Nccl {
 public:
  using Communicator = struct ncclComm*;
  static constexpr int kFloat16 = 6, kSum = 0;  // ncclDataType_t, ncclRedOp_t

  static const Nccl* get() {
    static const Nccl library;
    return library.all_reduce_ != nullptr ? &library : nullptr;
  }
  std::vector<Communicator> make(int gpus) const {
    std::vector<Communicator> all(static_cast<std::size_t>(gpus));
    std::vector<int> devices;
    for (int i = 0; i < gpus; ++i) devices.push_back(i);
    succeed(init_(all.data(), gpus, devices.data()), "ncclCommInitAll");
    return all;
  }
  void destroy(Communicator one) const { destroy_(one); }
  void all_reduce(void* buffer, std::size_t count, Communicator one, cudaStream_t stream) const {
    succeed(all_reduce_(buffer, buffer, count, kFloat16, kSum, one, stream), "ncclAllReduce");
  }
  void begin() const { succeed(begin_(), "ncclGroupStart"); }
  void end() const { succeed(end_(), "ncclGroupEnd"); }

 private:
  Nccl() {
    void* file = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) return;
    find(file, "ncclCommInitAll", init_);
    find(file, "ncclCommDestroy", destroy_);
    find(file, "ncclGroupStart", begin_);
    find(file, "ncclGroupEnd", end_);
    find(file, "ncclAllReduce", all_reduce_);
    if (init_ == nullptr || destroy_ == nullptr || begin_ == nullptr || end_ == nullptr) {
      all_reduce_ = nullptr;
    }
  }
  template <class Function>
  static void find(void* file, const char* name, Function& to) {
    to = reinterpret_cast<Function>(dlsym(file, name));
  }
  static void succeed(int status, const char* what) {
    if (status != 0) throw InputError(print_to_string("%s failed with status %d", what, status));
  }

  int (*init_)(Communicator*, int, const int*) = nullptr;
  int (*destroy_)(Communicator) = nullptr;
  int (*begin_)() = nullptr;
  int (*end_)() = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, Communicator,
                     cudaStream_t) = nullptr;
};

struct DestroyCommunicator {
  void operator()(Nccl::Communicator one) const { Nccl::get()->destroy(one); }
};

/// A GPU's part of an all-reduce.
struct Rank {
  Stream stream;
  DeviceMemory buffer;
  std::unique_ptr<ncclComm, DestroyCommunicator> communicator;
};

/// An all-reduce over GPUs 0 to n-1, timed on GPU 0 by events around back-to-back calls.
class AllReduceExperiment final : public Experiment {
 public:
  explicit AllReduceExperiment(const Case& c) : count_(c.bytes / 2) {
    for (const Nccl::Communicator one : Nccl::get()->make(static_cast<int>(c.gpus))) {
      ranks_.emplace_back().communicator.reset(one);
    }
    on_each([&](Rank& rank, int) {
      rank.stream = make_stream();
      rank.buffer = allocate(c.bytes);
    });
    const OnDevice first(0);
    begin_ = make_event();
    end_ = make_event();
  }

  double check() override {
    // GPU i holds i + 1 everywhere; the sum is exact in half precision.
    on_each([&](Rank& rank, int gpu) {
      const std::vector<std::uint16_t> same(static_cast<std::size_t>(count_), half(gpu + 1));
      upload(rank.buffer.get(), same.data(), 2 * same.size(), rank.stream.get());
    });
    once();
    wait();
    const int n = static_cast<int>(ranks_.size());
    Checker checker;
    on_each([&](Rank& rank, int) {
      std::vector<std::uint16_t> got(static_cast<std::size_t>(count_));
      download(got.data(), rank.buffer.get(), 2 * got.size(), rank.stream.get());
      for (const std::int64_t i : spread_indices(count_, 100)) {
        checker.equal(got[static_cast<std::size_t>(i)], half(n * (n + 1) / 2));
      }
    });
    on_each([&](Rank& rank, int gpu) {
      fill(rank.buffer.get(), 2 * count_, DType::kFp16, static_cast<std::uint64_t>(gpu) + 1,
           rank.stream.get());
    });
    return checker.worst();
  }
  double time_us(int calls) override {
    wait();
    const OnDevice first(0);
    require(cudaEventRecord(begin_.get(), ranks_[0].stream.get()), "an event");
    for (int i = 0; i < calls; ++i) once();
    require(cudaEventRecord(end_.get(), ranks_[0].stream.get()), "an event");
    wait();
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "events");
    return 1e3 * ms / calls;
  }

 private:
  /// Bits of a small whole number in half precision.
  static std::uint16_t half(int value) {
    int exponent = 0;
    while (value >> (exponent + 1) != 0) ++exponent;
    return static_cast<std::uint16_t>((exponent + 15) << 10 | (value - (1 << exponent))
                                                                  << (10 - exponent));
  }
  template <class Do>
  void on_each(const Do& task) {
    for (int gpu = 0; gpu < static_cast<int>(ranks_.size()); ++gpu) {
      const OnDevice chosen(gpu);
      task(ranks_[static_cast<std::size_t>(gpu)], gpu);
    }
  }
  void once() {
    Nccl::get()->begin();
    for (const Rank& rank : ranks_) {
      Nccl::get()->all_reduce(rank.buffer.get(), static_cast<std::size_t>(count_),
                              rank.communicator.get(), rank.stream.get());
    }
    Nccl::get()->end();
  }
  void wait() {
    for (const Rank& rank : ranks_) {
      require(cudaStreamSynchronize(rank.stream.get()), "an all-reduce");
    }
  }

  std::int64_t count_;
  std::vector<Rank> ranks_;
  Event begin_, end_;
};

std::unique_ptr<Experiment> launches(const Case& c, CudaArena& arena) {
  // An empty kernel leaves nothing to compare; that it ran without error is the check.
  return make_experiment(
      c, arena, [](std::int64_t, cudaStream_t stream) { launch_empty(stream); },
      [&arena] {
        require(cudaStreamSynchronize(arena.stream()), "an empty kernel");
        return 0.0;
      },
      c.kernel == Kernel::kGraph ? Launching::kGraph : Launching::kStream);
}

/// Compares copied words with the pattern that they are copies of.
double check_words(std::int64_t count, const std::uint32_t* got, std::uint64_t seed) {
  Checker checker;
  for (const std::int64_t i : spread_indices(count, 1000)) {
    checker.equal(got[i], pattern(DType::kFp32, seed, static_cast<std::uint64_t>(i)));
  }
  return checker.worst();
}

std::unique_ptr<Experiment> host_copies(const Case& c, CudaArena& arena) {
  const auto pinned = std::make_shared<PinnedMemory>(allocate_pinned(c.bytes));
  const bool up = c.kernel == Kernel::kHostToDevice;
  const std::int64_t count = c.bytes / 4;
  auto* words = static_cast<std::uint32_t*>(pinned->get());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t word = pattern(DType::kFp32, arena.seed(), static_cast<std::uint64_t>(i));
    words[i] = up ? word : ~word;  // what comes down differs from what was there
  }
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const void* from = up ? words : arena.at(arena.slot(DType::kFp32, c.bytes, r));
        require(cudaMemcpyAsync(up ? arena.output() : pinned->get(), from,
                                static_cast<std::size_t>(c.bytes),
                                up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
                "a copy");
      },
      [=, &arena] {
        std::vector<std::uint32_t> got(static_cast<std::size_t>(count));
        if (up) download(got.data(), arena.output(), 4 * got.size(), arena.stream());
        require(cudaStreamSynchronize(arena.stream()), "a copy");
        return check_words(count, up ? got.data() : words, arena.seed());
      },
      Launching::kStream);
}

/// Lets GPU `from` reach the memory of GPU `to`.
void enable_peer(int from, int to) {
  int possible = 0;
  require(cudaDeviceCanAccessPeer(&possible, from, to), "asking for a peer");
  if (possible == 0) throw InputError(print_to_string("GPU %d cannot reach GPU %d", from, to));
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(to, 0);
  if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
  } else {
    require(enabled, "peer access");
  }
}

std::unique_ptr<Experiment> peer_copies(const Case& c, CudaArena& arena, int device) {
  const int peer = device == 0 ? 1 : 0;
  enable_peer(device, peer);
  const auto memory = [&] {
    const OnDevice chosen(peer);
    auto made = std::make_shared<DeviceMemory>(allocate(c.bytes));
    require(cudaMemset(made->get(), 0, static_cast<std::size_t>(c.bytes)), "clearing");
    require(cudaDeviceSynchronize(), "clearing");  // of what an earlier copy may have left
    return made;
  }();
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        require(
            cudaMemcpyPeerAsync(memory->get(), peer, arena.at(arena.slot(DType::kFp32, c.bytes, r)),
                                device, static_cast<std::size_t>(c.bytes), stream),
            "a peer copy");
      },
      [=, &arena] {
        std::vector<std::uint32_t> got(static_cast<std::size_t>(c.bytes / 4));
        download(got.data(), memory->get(), 4 * got.size(), arena.stream());
        return check_words(c.bytes / 4, got.data(), arena.seed());
      },
      Launching::kStream);
}

}  // namespace

bool has_nccl() {
  return Nccl::get() != nullptr;
}

std::unique_ptr<Experiment> prepare_links(const Case& c, CudaArena& arena, int device) {
  switch (c.kernel) {
    case Kernel::kLaunch:
    case Kernel::kGraph:
      return launches(c, arena);
    case Kernel::kHostToDevice:
    case Kernel::kDeviceToHost:
      return host_copies(c, arena);
    case Kernel::kPeerCopy:
      return peer_copies(c, arena, device);
    default:
      return std::make_unique<AllReduceExperiment>(c);
  }
}

std::unique_ptr<Experiment> prepare_streams(const Case& c, CudaArena& arena) {
  const std::int64_t parts = c.kernel == Kernel::kTriad ? 3 : c.kernel == Kernel::kCopy ? 2 : 1;
  const std::int64_t bytes = c.bytes / parts / 256 * 256;
  const auto input = [=, &arena](std::int64_t r) {
    return arena.slot(DType::kFp32, (parts == 3 ? 2 : 1) * bytes, r);
  };
  if (c.kernel == Kernel::kRead) {
    return make_experiment(
        c, arena,
        [=, &arena](std::int64_t r, cudaStream_t stream) {
          auto* total = arena.output<std::uint32_t>();
          if (r == 0) require(cudaMemsetAsync(total, 0, sizeof(std::uint32_t), stream), "a sum");
          launch_read(arena.at(input(r)), bytes, total, stream);
        },
        [=, &arena] {
          std::uint32_t want = 0, got = 0;
          for (std::int64_t i = 0; i < bytes / 4; ++i) {
            want += pattern(DType::kFp32, arena.seed(), static_cast<std::uint64_t>(i));
          }
          download(&got, arena.output(), sizeof(got), arena.stream());
          Checker checker;
          checker.equal(got, want);
          return checker.worst();
        });
  }
  return make_experiment(
      c, arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const float* from = arena.at<float>(input(r));
        auto* to = arena.output<float>(
            static_cast<std::int64_t>(arena.slot(DType::kFp32, bytes, r).offset));
        if (c.kernel == Kernel::kWrite) return launch_write(to, bytes, kWritten, stream);
        if (c.kernel == Kernel::kCopy) return launch_copy(to, from, bytes, stream);
        launch_triad(to, from, from + bytes / 4, bytes, stream);
      },
      [=, &arena] { return check_stream(c.kernel, bytes / 4, arena.results<float>(), input(0)); });
}

}  // namespace servesim::calibrate::cuda
