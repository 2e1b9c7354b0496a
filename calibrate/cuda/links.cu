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

/// An all-reduce over GPUs 0 to n-1, timed on GPU 0 by events around back-to-back calls.
class AllReduceExperiment final : public Experiment {
 public:
  AllReduceExperiment(const Case& c, int home) : count_(c.bytes / 2), home_(home) {
    communicators_ = Nccl::get()->make(static_cast<int>(c.gpus));
    for (int gpu = 0; gpu < static_cast<int>(c.gpus); ++gpu) {
      require(cudaSetDevice(gpu), "choosing a GPU");
      buffers_.push_back(allocate(c.bytes));
      cudaStream_t stream = nullptr;
      require(cudaStreamCreate(&stream), "a stream");
      streams_.push_back(stream);
    }
    require(cudaSetDevice(0), "choosing a GPU");
    require(cudaEventCreate(&begin_), "an event");
    require(cudaEventCreate(&end_), "an event");
  }
  ~AllReduceExperiment() override {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      cudaSetDevice(static_cast<int>(i));
      cudaStreamDestroy(streams_[i]);
      Nccl::get()->destroy(communicators_[i]);
      buffers_[i].reset();
    }
    cudaSetDevice(0);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaSetDevice(home_);
  }
  AllReduceExperiment(const AllReduceExperiment&) = delete;
  AllReduceExperiment& operator=(const AllReduceExperiment&) = delete;

  double check() override {
    // GPU i holds i + 1 everywhere; the sum is exact in half precision.
    const double n = static_cast<double>(streams_.size());
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const std::vector<std::uint16_t> ones(static_cast<std::size_t>(count_),
                                            half(static_cast<int>(i) + 1));
      require(cudaSetDevice(static_cast<int>(i)), "choosing a GPU");
      require(cudaMemcpy(buffers_[i].get(), ones.data(), 2 * ones.size(), cudaMemcpyHostToDevice),
              "copying");
    }
    once();
    wait();
    Checker checker;
    std::vector<std::uint16_t> got(static_cast<std::size_t>(count_));
    require(cudaMemcpy(got.data(), buffers_.back().get(), 2 * got.size(), cudaMemcpyDeviceToHost),
            "copying");
    for (const std::int64_t i : spread_indices(count_, 100)) {
      checker.equal(got[static_cast<std::size_t>(i)], half(static_cast<int>(n * (n + 1) / 2)));
    }
    fill_random();
    return checker.worst();
  }
  double time_us(int calls) override {
    wait();
    require(cudaSetDevice(0), "choosing a GPU");
    require(cudaEventRecord(begin_, streams_[0]), "an event");
    for (int i = 0; i < calls; ++i) once();
    require(cudaSetDevice(0), "choosing a GPU");
    require(cudaEventRecord(end_, streams_[0]), "an event");
    wait();
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin_, end_), "events");
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
  void fill_random() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      require(cudaSetDevice(static_cast<int>(i)), "choosing a GPU");
      fill(buffers_[i].get(), 2 * count_, DType::kFp16, i + 1, streams_[i]);
    }
  }
  void once() {
    Nccl::get()->begin();
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      Nccl::get()->all_reduce(buffers_[i].get(), static_cast<std::size_t>(count_),
                              communicators_[i], streams_[i]);
    }
    Nccl::get()->end();
  }
  void wait() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      require(cudaSetDevice(static_cast<int>(i)), "choosing a GPU");
      require(cudaStreamSynchronize(streams_[i]), "an all-reduce");
    }
  }

  std::int64_t count_;
  int home_;
  std::vector<Nccl::Communicator> communicators_;
  std::vector<DeviceMemory> buffers_;
  std::vector<cudaStream_t> streams_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

std::unique_ptr<Experiment> launches(const Case& c, CudaArena& arena) {
  // An empty kernel leaves nothing to compare; that it ran without error is the check.
  return make_experiment(
      arena, [](std::int64_t, cudaStream_t stream) { launch_empty(stream); },
      [&arena] {
        require(cudaStreamSynchronize(arena.stream()), "an empty kernel");
        return 0.0;
      },
      c.kernel == Kernel::kGraph);
}

std::unique_ptr<Experiment> host_copies(const Case& c, CudaArena& arena) {
  const auto pinned = std::make_shared<PinnedMemory>(allocate_pinned(c.bytes));
  const bool up = c.kernel == Kernel::kHostToDevice;
  auto* words = static_cast<std::uint32_t*>(pinned->get());
  for (std::int64_t i = 0; i < c.bytes / 4; ++i) {
    words[i] = pattern(DType::kFp32, arena.seed(), static_cast<std::uint64_t>(i));
  }
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const void* from = up ? pinned->get() : arena.at(arena.slot(DType::kFp32, c.bytes, r));
        require(cudaMemcpyAsync(up ? arena.output() : pinned->get(), from,
                                static_cast<std::size_t>(c.bytes),
                                up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
                "a copy");
      },
      [=, &arena] {
        const auto got =
            up ? arena.results<std::uint32_t>(c.bytes / 4) : std::vector<std::uint32_t>();
        require(cudaStreamSynchronize(arena.stream()), "a copy");
        Checker checker;
        for (const std::int64_t i : spread_indices(c.bytes / 4, 1000)) {
          checker.equal(up ? got[static_cast<std::size_t>(i)] : words[i],
                        pattern(DType::kFp32, arena.seed(), static_cast<std::uint64_t>(i)));
        }
        return checker.worst();
      },
      false);
}

std::unique_ptr<Experiment> peer_copies(const Case& c, CudaArena& arena, int device) {
  const int peer = device == 0 ? 1 : 0;
  int possible = 0;
  require(cudaDeviceCanAccessPeer(&possible, device, peer), "asking for a peer");
  if (possible == 0) throw InputError(print_to_string("GPU %d cannot reach GPU %d", device, peer));
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer, 0);
  if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
  } else {
    require(enabled, "peer access");
  }
  require(cudaSetDevice(peer), "choosing a GPU");
  const auto memory = std::make_shared<DeviceMemory>(allocate(c.bytes));
  require(cudaSetDevice(device), "choosing a GPU");
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        require(
            cudaMemcpyPeerAsync(memory->get(), peer, arena.at(arena.slot(DType::kFp32, c.bytes, r)),
                                device, static_cast<std::size_t>(c.bytes), stream),
            "a peer copy");
      },
      [=, &arena] {
        std::vector<std::uint32_t> got(static_cast<std::size_t>(c.bytes / 4));
        require(cudaStreamSynchronize(arena.stream()), "a peer copy");
        require(cudaMemcpy(got.data(), memory->get(), static_cast<std::size_t>(c.bytes),
                           cudaMemcpyDeviceToHost),
                "copying");
        Checker checker;
        for (const std::int64_t i : spread_indices(c.bytes / 4, 1000)) {
          checker.equal(got[static_cast<std::size_t>(i)],
                        pattern(DType::kFp32, arena.seed(), static_cast<std::uint64_t>(i)));
        }
        return checker.worst();
      },
      false);
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
      return std::make_unique<AllReduceExperiment>(c, device);
  }
}

std::unique_ptr<Experiment> prepare_streams(const Case& c, CudaArena& arena) {
  const std::int64_t parts = c.kernel == Kernel::kTriad ? 3 : c.kernel == Kernel::kCopy ? 2 : 1;
  const std::int64_t bytes = c.bytes / parts / 256 * 256;
  const std::int64_t input = (parts == 3 ? 2 : 1) * bytes;
  if (c.kernel == Kernel::kRead) {
    return make_experiment(
        arena,
        [=, &arena](std::int64_t r, cudaStream_t stream) {
          auto* total = arena.output<std::uint32_t>();
          if (r == 0) require(cudaMemsetAsync(total, 0, sizeof(std::uint32_t), stream), "a sum");
          launch_read(arena.at(arena.slot(DType::kFp32, bytes, r)), bytes, total, stream);
        },
        [=, &arena] {
          std::uint32_t want = 0;
          for (std::int64_t i = 0; i < bytes / 4; ++i) {
            want += pattern(DType::kFp32, arena.seed(), static_cast<std::uint64_t>(i));
          }
          Checker checker;
          checker.equal(arena.results<std::uint32_t>(1)[0], want);
          return checker.worst();
        });
  }
  return make_experiment(
      arena,
      [=, &arena](std::int64_t r, cudaStream_t stream) {
        const float* from = arena.at<float>(arena.slot(DType::kFp32, input, r));
        auto* to = arena.output<float>(
            static_cast<std::int64_t>(arena.slot(DType::kFp32, bytes, r).offset));
        if (c.kernel == Kernel::kWrite) return launch_write(to, bytes, 1.5f, stream);
        if (c.kernel == Kernel::kCopy) return launch_copy(to, from, bytes, stream);
        launch_triad(to, from, from + bytes / 4, bytes, stream);
      },
      [=, &arena] {
        const Operand from = arena.slot(DType::kFp32, input, 0);
        const auto got = arena.results<float>(bytes / 4);
        Checker checker;
        for (const std::int64_t i : spread_indices(bytes / 4, 1000)) {
          const auto at = static_cast<std::uint64_t>(i);
          const double want = c.kernel == Kernel::kWrite ? 1.5
                              : c.kernel == Kernel::kCopy
                                  ? from(at)
                                  : from(at) + 3 * from(at + static_cast<std::uint64_t>(bytes / 4));
          checker.value(got[static_cast<std::size_t>(i)], want, 1e-5, 1e-5);
        }
        return checker.worst();
      });
}

}  // namespace servesim::calibrate::cuda
