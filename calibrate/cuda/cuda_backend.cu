// The CUDA backend: one GPU, its memory, its clocks.
#include <cuda_runtime.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "backend.hpp"
#include "core/error.hpp"
#include "cuda_experiments.hpp"
#include "gemm_lt.hpp"
#include "nvml.hpp"
#include "opening.hpp"
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

Stream make_stream() {
  cudaStream_t made = nullptr;
  require(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "a stream");
  return Stream(made);
}

Event make_event() {
  cudaEvent_t made = nullptr;
  require(cudaEventCreate(&made), "an event");
  return Event(made);
}

OnDevice::OnDevice(int device) {
  require(cudaGetDevice(&before_), "asking for the GPU");
  require(cudaSetDevice(device), "choosing a GPU");
}

void upload(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the GPU");
  require(cudaStreamSynchronize(stream), "copying to the GPU");
}

void download(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copying results");
  require(cudaStreamSynchronize(stream), "a kernel");
}

CudaArena::CudaArena(const Gpu& gpu, std::int64_t bytes, std::uint64_t seed, cudaStream_t stream)
    : gpu_(gpu),
      bytes_(bytes),
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

void CudaArena::forget_results() {
  constexpr int kNotANumber = 0xff;  // of every float type, in every byte
  require(cudaMemsetAsync(output_.get(), kNotANumber, static_cast<std::size_t>(bytes_), stream_),
          "clearing results");
}

void CudaArena::flush_l2() {
  // Read, not written, which would leave lines to be written back. From the far end of a region:
  // operands are taken from its start. REQUIRES: a region of four times the L2.
  const std::int64_t bytes = 2 * gpu_.l2_bytes / 4096 * 4096;
  const Operand end{DType::kFp32, seed_, static_cast<std::uint64_t>(bytes_ - bytes)};
  launch_read(at(end), bytes, static_cast<std::uint32_t*>(workspace_.get()), stream_);
}

namespace {

using Graph = std::unique_ptr<CUgraph_st, Release<cudaGraphDestroy>>;
using GraphExec = std::unique_ptr<CUgraphExec_st, Release<cudaGraphExecDestroy>>;

class CudaExperiment final : public Experiment {
 public:
  CudaExperiment(const Case& c, CudaArena& arena, Enqueue enqueue, Check check, Launching launching)
      : arena_(arena),
        enqueue_(std::move(enqueue)),
        check_(std::move(check)),
        launching_(launching),
        traffic_(traffic(c)) {}

  double check() override {
    arena_.forget_results();
    enqueue_(0, arena_.stream());
    require(cudaGetLastError(), "a launch");
    return check_();
  }
  double time_us(int calls) override {
    const cudaStream_t stream = arena_.stream();
    if (launching_ == Launching::kGraph) {
      capture(calls);
      if (calls * traffic_ < 2.0 * static_cast<double>(arena_.gpu().l2_bytes)) arena_.flush_l2();
    }
    require(cudaEventRecord(begin_.get(), stream), "an event");
    if (launching_ == Launching::kGraph) {
      require(cudaGraphLaunch(graph_.get(), stream), "a graph");
    } else {
      for (int i = 0; i < calls; ++i) enqueue_(++rotation_, stream);
      require(cudaGetLastError(), "a launch");
    }
    require(cudaEventRecord(end_.get(), stream), "an event");
    require(cudaEventSynchronize(end_.get()), "a kernel");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "events");
    return 1e3 * ms / calls;
  }

 private:
  /// Makes the graph of `calls` calls unless it is there. Operands were touched by check(): nothing
  /// is allocated while capturing.
  void capture(int calls) {
    if (captured_calls_ == calls) return;
    captured_calls_ = 0;
    graph_.reset();
    const cudaStream_t stream = arena_.stream();
    const Graph graph = recorded(calls, stream);
    cudaGraphExec_t made = nullptr;
    require(cudaGraphInstantiate(&made, graph.get(), 0), "a graph");
    graph_.reset(made);
    require(cudaGraphUpload(made, stream), "a graph");
    require(cudaStreamSynchronize(stream), "a graph");
    captured_calls_ = calls;
  }
  /// Ends the capture whatever happens: a stream that is left capturing fails every later kernel.
  Graph recorded(int calls, cudaStream_t stream) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    std::exception_ptr fault;
    try {
      for (int i = 0; i < calls; ++i) enqueue_(i + 1, stream);
      require(cudaGetLastError(), "a launch");
    } catch (...) {
      fault = std::current_exception();
    }
    cudaGraph_t recorded = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &recorded);
    Graph graph(recorded);
    if (fault) std::rethrow_exception(fault);
    require(ended, "capturing");
    return graph;
  }

  CudaArena& arena_;
  Enqueue enqueue_;
  Check check_;
  Launching launching_;
  double traffic_;  ///< bytes of a call
  int captured_calls_ = 0;
  std::int64_t rotation_ = 0;
  GraphExec graph_;
  Event begin_ = make_event(), end_ = make_event();
};

/// What of a GPU is known before it is used: the context that the first use makes counts as a user
/// of the GPU, in containers under a process number that is not ours.
Environment describe(int device, cudaDeviceProp& properties, const Nvml& nvml) {
  require(cudaGetDeviceProperties(&properties, device), "asking the GPU");
  require_capability(properties.name, properties.major, properties.minor);
  Environment e;
  e.backend = "cuda";
  e.device = properties.name;
  int runtime = 0, count = 1;
  cudaRuntimeGetVersion(&runtime);
  cudaGetDeviceCount(&count);
  e.devices = count;
  e.toolkit = "CUDA " + cuda_version_text(runtime);
  e.gemm_library = lt_version_text();
  e.units = properties.multiProcessorCount;
  e.cache_bytes = static_cast<double>(properties.l2CacheSize);
  e.compute_major = properties.major;
  e.compute_minor = properties.minor;
  nvml.describe(e);
  return e;
}

/// The PCI address of GPU `device`; throws InputError when it cannot be opened.
std::string address_of(int device) {
  Findings found;
  const cudaError_t status = cudaGetDeviceCount(&found.devices);
  cudaDriverGetVersion(&found.driver);
  cudaRuntimeGetVersion(&found.runtime);
  found.driver_too_old = status == cudaErrorInsufficientDriver;
  if (status != cudaSuccess) found.devices = 0;
  if (status == cudaSuccess || status == cudaErrorNoDevice || found.driver_too_old) {
    require_device(found, device);
  }
  require(status, "looking for GPUs");
  char text[32] = {};
  return cudaDeviceGetPCIBusId(text, sizeof(text), device) == cudaSuccess ? text : "";
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, std::uint64_t seed)
      : device_(device),
        bus_id_(address_of(device)),
        nvml_(bus_id_),
        environment_(describe(device, properties_, nvml_)) {
    environment_.bus_id = bus_id_;
    require(cudaSetDevice(device), "opening the GPU");
    std::size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "asking for free memory");
    environment_.memory_bytes = static_cast<double>(total);
    environment_.free_bytes = static_cast<double>(free);
    stream_ = make_stream();
    const Gpu gpu{properties_.multiProcessorCount, properties_.l2CacheSize};
    arena_ = std::make_unique<CudaArena>(
        gpu, region_bytes(environment_.free_bytes, environment_.cache_bytes), seed, stream_.get());
  }

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
  int device_;
  std::string bus_id_;
  Nvml nvml_;
  cudaDeviceProp properties_{};
  Environment environment_;
  Stream stream_;
  std::unique_ptr<CudaArena> arena_;
};

}  // namespace

std::unique_ptr<Experiment> make_experiment(const Case& c, CudaArena& arena, Enqueue enqueue,
                                            Check check, Launching launching) {
  return std::make_unique<CudaExperiment>(c, arena, std::move(enqueue), std::move(check),
                                          launching);
}

}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(int device, std::uint64_t seed) {
  return std::make_unique<cuda::CudaBackend>(device, seed);
}

}  // namespace servesim::calibrate
