/// The suite's kernels with their operands on a GPU.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "backend.hpp"
#include "checking.hpp"
#include "cuda_common.hpp"

namespace servesim::calibrate::cuda {

/// What the kernels of a GPU hang on.
struct Gpu {
  int sms = 1;
  std::int64_t l2_bytes = 0;
};

/// Device memory of random patterns, one region a type, and room for results and workspaces.
class CudaArena {
 public:
  CudaArena(const Gpu& gpu, std::int64_t bytes, std::uint64_t seed, cudaStream_t stream);

  std::int64_t bytes() const { return bytes_; }
  std::uint64_t seed() const { return seed_; }
  cudaStream_t stream() const { return stream_; }
  const Gpu& gpu() const { return gpu_; }

  /// See operand_slot().
  Operand slot(DType type, std::int64_t size, std::int64_t rotation, std::int64_t from = 0) const {
    return operand_slot({type, seed_, 0}, bytes_, size, rotation, from);
  }
  template <class T = void>
  const T* at(const Operand& operand) {
    return reinterpret_cast<const T*>(static_cast<const char*>(region(operand.type)) +
                                      operand.offset);
  }
  template <class T = void>
  T* output(std::int64_t bytes = 0) {
    return reinterpret_cast<T*>(static_cast<char*>(output_.get()) + bytes);
  }
  void* workspace() { return workspace_.get(); }
  /// Overwrites what earlier kernels left in `output`, so that a check does not take it for new.
  void forget_results();
  /// Fills L2 with what no kernel reads, so that the next one finds its operands in HBM.
  void flush_l2();

  /// Reads results of type T from the start of `output`: bf16 (as uint16_t), floats or integers.
  template <class T>
  Results results() {
    return [this](std::int64_t first, std::int64_t count) {
      std::vector<T> host(static_cast<std::size_t>(count));
      download(host.data(), output<T>() + first, sizeof(T) * host.size(), stream_);
      return results_of(host.data())(0, count);
    };
  }

 private:
  const void* region(DType type);

  Gpu gpu_;
  std::int64_t bytes_;
  std::uint64_t seed_;
  cudaStream_t stream_;
  std::map<DType, DeviceMemory> regions_;
  DeviceMemory output_, workspace_;
};

/// Enqueues one call; the argument is the rotation.
using Enqueue = std::function<void(std::int64_t, cudaStream_t)>;
using Check = std::function<double()>;

/// How the calls of a sample reach the GPU.
enum class Launching {
  kGraph,   ///< captured into a CUDA graph and replayed, so that launches cost no time
  kStream,  ///< one by one
};

/// Times calls of `c` between events. Calls that together touch less than L2 holds twice would find
/// their operands there when a graph is replayed: L2 is flushed before them.
std::unique_ptr<Experiment> make_experiment(const Case& c, CudaArena& arena, Enqueue enqueue,
                                            Check check, Launching launching = Launching::kGraph);

/// GEMV, GEMM.
std::unique_ptr<Experiment> prepare_products(const Case& c, CudaArena& arena);
/// Decode and prefill attention.
std::unique_ptr<Experiment> prepare_attention(const Case& c, CudaArena& arena);
/// Elementwise kernels and sampling.
std::unique_ptr<Experiment> prepare_rows(const Case& c, CudaArena& arena);
/// Bandwidth.
std::unique_ptr<Experiment> prepare_streams(const Case& c, CudaArena& arena);
/// Launches, copies between host, GPU and peer, all-reduces through NCCL.
std::unique_ptr<Experiment> prepare_links(const Case& c, CudaArena& arena, int device);
/// Whether NCCL's library can be opened.
bool has_nccl();

}  // namespace servesim::calibrate::cuda
