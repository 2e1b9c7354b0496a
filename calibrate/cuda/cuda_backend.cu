// The CUDA backend: one GPU, its memory, its clocks.
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>

#include "backend.hpp"
#include "core/error.hpp"
#include "cuda_experiments.hpp"
#include "gemm_lt.hpp"
#include "nvml.hpp"
#include "text.hpp"

namespace servesim::calibrate {
namespace cuda {

void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string text = print_to_string("%s: %s", what, cudaGetErrorString(status));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw InputError("not enough GPU memory: " + text);
  }
  throw std::runtime_error(text);
}

DeviceMemory allocate(std::int64_t bytes) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 256))),
          "operands");
  return DeviceMemory(memory);
}

PinnedMemory allocate_pinned(std::int64_t bytes) {
  void* memory = nullptr;
  require(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "pinned memory");
  return PinnedMemory(memory);
}

CudaArena::CudaArena(std::int64_t bytes, std::uint64_t seed, cudaStream_t stream)
    : bytes_(bytes),
      seed_(seed),
      stream_(stream),
      output_(allocate(bytes)),
      workspace_(allocate(LtGemm::kWorkspaceBytes)) {}

const void* CudaArena::region(DType type) {
  DeviceMemory& memory = regions_[type];
  if (!memory) {
    memory = allocate(bytes_);
    fill(memory.get(), bytes_, type, seed_, stream_);
    require(cudaStreamSynchronize(stream_), "filling operands");
  }
  return memory.get();
}

Operand CudaArena::slot(DType type, std::int64_t size, std::int64_t rotation,
                        std::int64_t from) const {
  constexpr std::int64_t kAlign = 4096;
  if (from + size > bytes_) {
    throw InputError(print_to_string("an operand of %lld MiB does not fit into GPU memory",
                                     static_cast<long long>(size >> 20)));
  }
  const std::int64_t step = (size + kAlign - 1) / kAlign * kAlign;
  const std::int64_t slots = std::max<std::int64_t>((bytes_ - from) / step, 1);
  return {type, seed_, static_cast<std::uint64_t>(from + rotation % slots * step)};
}

namespace {

class CudaExperiment final : public Experiment {
 public:
  CudaExperiment(CudaArena& arena, Enqueue enqueue, Check check, bool captured)
      : arena_(arena), enqueue_(std::move(enqueue)), check_(std::move(check)), captured_(captured) {
    require(cudaEventCreate(&begin_), "an event");
    require(cudaEventCreate(&end_), "an event");
  }
  ~CudaExperiment() override {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  CudaExperiment(const CudaExperiment&) = delete;
  CudaExperiment& operator=(const CudaExperiment&) = delete;

  double check() override {
    enqueue_(0, arena_.stream());
    require(cudaGetLastError(), "a launch");
    return check_();
  }
  double time_us(int calls) override {
    if (captured_) capture(calls);
    const cudaStream_t stream = arena_.stream();
    require(cudaEventRecord(begin_, stream), "an event");
    if (captured_) {
      require(cudaGraphLaunch(graph_, stream), "a graph");
    } else {
      for (int i = 0; i < calls; ++i) enqueue_(++rotation_, stream);
    }
    require(cudaEventRecord(end_, stream), "an event");
    require(cudaEventSynchronize(end_), "a kernel");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin_, end_), "events");
    return 1e3 * ms / calls;
  }

 private:
  /// Makes the graph of `calls` calls unless it is there. Operands were touched by check(): nothing
  /// is allocated while capturing.
  void capture(int calls) {
    if (captured_calls_ == calls) return;
    if (graph_ != nullptr) require(cudaGraphExecDestroy(graph_), "a graph");
    graph_ = nullptr;
    cudaGraph_t graph = nullptr;
    const cudaStream_t stream = arena_.stream();
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    for (int i = 0; i < calls; ++i) enqueue_(i + 1, stream);
    require(cudaStreamEndCapture(stream, &graph), "capturing");
    const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    require(made, "a graph");
    require(cudaGraphUpload(graph_, stream), "a graph");
    require(cudaStreamSynchronize(stream), "a graph");
    captured_calls_ = calls;
  }

  CudaArena& arena_;
  Enqueue enqueue_;
  Check check_;
  bool captured_;
  int captured_calls_ = 0;
  std::int64_t rotation_ = 0;
  cudaGraphExec_t graph_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// Opens GPU `device`; says in one line what stands against it.
cudaDeviceProp open_device(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (status == cudaErrorInsufficientDriver && driver > 0) {
    throw InputError(print_to_string(
        "the driver is too old: it supports CUDA %s, calibrate was built with CUDA %s; update the "
        "driver or build with an older toolkit",
        cuda_version_text(driver).c_str(), cuda_version_text(runtime).c_str()));
  }
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver || count == 0) {
    throw InputError(
        "no GPU was found (no NVIDIA driver, or no device it may use); --backend cpu measures this "
        "machine's cores");
  }
  require(status, "looking for GPUs");
  if (device >= count) {
    throw InputError(
        print_to_string("--device %d: there are %d GPUs, counted from 0", device, count));
  }
  cudaDeviceProp properties{};
  require(cudaSetDevice(device), "opening the GPU");
  require(cudaGetDeviceProperties(&properties, device), "asking the GPU");
  if (properties.major < 8) {
    throw InputError(print_to_string("%s has compute capability %d.%d; 8.0 and later are measured",
                                     properties.name, properties.major, properties.minor));
  }
  return properties;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, std::uint64_t seed)
      : device_(device), properties_(open_device(device)), nvml_(bus_id(device)) {
    describe();
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    arena_ = std::make_unique<CudaArena>(arena_bytes(), seed, stream_);
    arena_->sms = properties_.multiProcessorCount;
  }
  ~CudaBackend() override {
    arena_.reset();
    cudaStreamDestroy(stream_);
  }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  const Environment& environment() const override { return environment_; }

  SuiteLimits limits() const override {
    SuiteLimits limits;
    limits.gpu = true;
    limits.fp8 = properties_.major > 8 || (properties_.major == 8 && properties_.minor >= 9);
    limits.int8 = true;
    limits.devices = environment_.devices;
    limits.nccl = limits.devices > 1 && has_nccl();
    limits.arena_bytes = static_cast<double>(arena_->bytes());
    // Of an A100 or so; only the plan hangs on these.
    limits.flops_per_s = 200e12;
    limits.bytes_per_s = 1e12;
    return limits;
  }

  std::unique_ptr<Experiment> prepare(const Case& c) override {
    const std::string family = family_of(c.kernel);
    if (family == "bandwidth") return prepare_streams(c, *arena_);
    if (family == "gemv" || family == "gemm" || family == "sustained_gemm") {
      return prepare_products(c, *arena_);
    }
    if (family == "decode_attention" || family == "prefill_attention") {
      return prepare_attention(c, *arena_);
    }
    if (family == "elementwise" || family == "sampling") return prepare_rows(c, *arena_);
    return prepare_links(c, *arena_, device_);
  }

  PowerSample sample_power() override { return nvml_.sample(); }

 private:
  static std::string bus_id(int device) {
    char text[32] = {};
    return cudaDeviceGetPCIBusId(text, sizeof(text), device) == cudaSuccess ? text : "";
  }

  void describe() {
    Environment& e = environment_;
    e.backend = "cuda";
    e.device = properties_.name;
    int runtime = 0, count = 1;
    cudaRuntimeGetVersion(&runtime);
    cudaGetDeviceCount(&count);
    e.devices = count;
    e.toolkit = "CUDA " + cuda_version_text(runtime);
    e.gemm_library = lt_version_text();
    e.bus_id = bus_id(device_);
    std::size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "asking for free memory");
    e.memory_bytes = static_cast<double>(total);
    e.free_bytes = static_cast<double>(free);
    e.units = properties_.multiProcessorCount;
    e.cache_bytes = static_cast<double>(properties_.l2CacheSize);
    e.compute_major = properties_.major;
    e.compute_minor = properties_.minor;
    nvml_.describe(e);
  }

  /// Regions for six types and the results, within three quarters of what is free.
  std::int64_t arena_bytes() const {
    constexpr double kRegions = 7, kMiB = 1 << 20;
    constexpr double kMost = 2048 * kMiB;
    const double least = std::max(256 * kMiB, 4 * environment_.cache_bytes);
    const double room = 0.75 * environment_.free_bytes / kRegions;
    if (room < least) {
      throw InputError(print_to_string(
          "not enough GPU memory: %.1f GiB are free, %.1f GiB are needed; end what else uses the "
          "GPU",
          environment_.free_bytes / 1024 / kMiB, kRegions * least / 0.75 / 1024 / kMiB));
    }
    return static_cast<std::int64_t>(std::min(room, std::max(kMost, least)) / kMiB) << 20;
  }

  int device_;
  cudaDeviceProp properties_;
  Nvml nvml_;
  Environment environment_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CudaArena> arena_;
};

}  // namespace

std::unique_ptr<Experiment> make_experiment(CudaArena& arena, Enqueue enqueue, Check check,
                                            bool captured) {
  return std::make_unique<CudaExperiment>(arena, std::move(enqueue), std::move(check), captured);
}

}  // namespace cuda

bool built_with_cuda() {
  return true;
}

std::unique_ptr<Backend> make_cuda_backend(int device, std::uint64_t seed) {
  return std::make_unique<cuda::CudaBackend>(device, seed);
}

}  // namespace servesim::calibrate
