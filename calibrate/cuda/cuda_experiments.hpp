/// The suite's kernels with their operands on a GPU.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "backend.hpp"
#include "cuda_common.hpp"

namespace servesim::calibrate::cuda {

/// Device memory of random patterns, one region a type, and room for results and workspaces.
class CudaArena {
 public:
  CudaArena(std::int64_t bytes, std::uint64_t seed, cudaStream_t stream);

  std::int64_t bytes() const { return bytes_; }
  std::uint64_t seed() const { return seed_; }
  cudaStream_t stream() const { return stream_; }
  int sms = 1;

  /// Slots of `size` bytes side by side, `from` bytes into the region: rotation r takes the r-th.
  Operand slot(DType type, std::int64_t size, std::int64_t rotation, std::int64_t from = 0) const;
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
  /// Copies `count` results back.
  template <class T>
  std::vector<T> results(std::int64_t count, std::int64_t from_bytes = 0) {
    std::vector<T> host(static_cast<std::size_t>(count));
    require(cudaMemcpyAsync(host.data(), output<char>(from_bytes), sizeof(T) * host.size(),
                            cudaMemcpyDeviceToHost, stream_),
            "copying results");
    require(cudaStreamSynchronize(stream_), "a kernel");
    return host;
  }

 private:
  const void* region(DType type);

  std::int64_t bytes_;
  std::uint64_t seed_;
  cudaStream_t stream_;
  std::map<DType, DeviceMemory> regions_;
  DeviceMemory output_, workspace_;
};

/// Enqueues one call; the argument is the rotation.
using Enqueue = std::function<void(std::int64_t, cudaStream_t)>;
using Check = std::function<double()>;

/// Calls that are captured into a CUDA graph of `calls` nodes and replayed between events, so that
/// launches cost no time; `captured` off times the stream itself.
std::unique_ptr<Experiment> make_experiment(CudaArena& arena, Enqueue enqueue, Check check,
                                            bool captured = true);

std::unique_ptr<Experiment> prepare_products(const Case& c, CudaArena& arena);
std::unique_ptr<Experiment> prepare_attention(const Case& c, CudaArena& arena);
std::unique_ptr<Experiment> prepare_rows(const Case& c, CudaArena& arena);
std::unique_ptr<Experiment> prepare_streams(const Case& c, CudaArena& arena);
/// Launches, copies between host, GPU and peer, all-reduces through NCCL.
std::unique_ptr<Experiment> prepare_links(const Case& c, CudaArena& arena, int device);
bool has_nccl();

}  // namespace servesim::calibrate::cuda
