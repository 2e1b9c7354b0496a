/// What the CUDA sources share: errors, memory, kernels' launchers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "patterns.hpp"

namespace servesim::calibrate::cuda {

/// Throws InputError for want of memory, else std::runtime_error with `what`.
void require(cudaError_t status, const char* what);

/// Calls a function of the runtime on what a unique_ptr lets go.
template <auto kRelease>
struct Release {
  template <class T>
  void operator()(T* owned) const {
    kRelease(owned);
  }
};
using DeviceMemory = std::unique_ptr<void, Release<cudaFree>>;
using PinnedMemory = std::unique_ptr<void, Release<cudaFreeHost>>;
using Stream = std::unique_ptr<CUstream_st, Release<cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, Release<cudaEventDestroy>>;
DeviceMemory allocate(std::int64_t bytes);
PinnedMemory allocate_pinned(std::int64_t bytes);
/// One that does not wait for the default stream.
Stream make_stream();
Event make_event();

/// Chooses a GPU and goes back to the one before, whatever happens.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

/// Copies in the order of `stream`, whose kernels may follow at once, and waits. The default stream
/// would be out of that order.
void upload(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
void download(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
/// Device memory with what `host` holds.
template <class T>
DeviceMemory uploaded(const std::vector<T>& host, cudaStream_t stream) {
  DeviceMemory memory = allocate(static_cast<std::int64_t>(sizeof(T) * host.size()));
  upload(memory.get(), host.data(), sizeof(T) * host.size(), stream);
  return memory;
}

/// Fills `bytes` of device memory with patterns of `type`.
void fill(void* memory, std::int64_t bytes, DType type, std::uint64_t seed, cudaStream_t stream);

/// Launchers. All sizes in elements unless they say bytes; operands are 16-byte aligned and sizes
/// multiples of 16 bytes, which the suite's are. None of them waits.
void launch_read(const void* from, std::int64_t bytes, std::uint32_t* sum, cudaStream_t stream);
void launch_write(void* to, std::int64_t bytes, float value, cudaStream_t stream);
void launch_copy(void* to, const void* from, std::int64_t bytes, cudaStream_t stream);
/// a = b + 3 c over floats of `bytes` each.
void launch_triad(float* a, const float* b, const float* c, std::int64_t bytes,
                  cudaStream_t stream);
void launch_empty(cudaStream_t stream);

/// out[n] = weights[n][k] x[k]: bf16, fp16, int8 with a scale a row, int4 with one a group of 128.
void launch_gemv(DType type, const void* weights, const void* x, const void* scales, void* out,
                 std::int64_t n, std::int64_t k, cudaStream_t stream);
/// bf16 to fp8 e4m3 or to int8 times kInt8Scale.
void launch_quantise(DType type, const void* from, void* to, std::int64_t count,
                     cudaStream_t stream);

/// Paged decode attention, head size 128; `partial` and `sums` hold splits x batch x heads rows of
/// 128 and 2 floats.
struct DecodeArguments {
  const void *q, *k, *v;
  const std::int32_t* table;
  void* out;
  float *partial, *sums;
  int batch, context, heads, kv_heads, block_size, blocks_per_sequence, splits;
};
void launch_decode(const DecodeArguments& a, cudaStream_t stream);

/// Causal attention of whole prompts, head size 128, [prompt][token][head][dim].
struct PrefillArguments {
  const void *q, *k, *v;
  void* out;
  int batch, tokens, heads, kv_heads;
};
void launch_prefill(const PrefillArguments& a, cudaStream_t stream);

void launch_rms_norm(const void* x, const void* residual, const void* weight, void* residual_out,
                     void* out, std::int64_t rows, std::int64_t n, cudaStream_t stream);
/// `cos_sin` has 64 cosines and 64 sines a token; head size 128.
void launch_rope(const void* x, const float* cos_sin, void* out, std::int64_t tokens,
                 std::int64_t heads, cudaStream_t stream);
void launch_silu_mul(const void* x, void* out, std::int64_t rows, std::int64_t n,
                     cudaStream_t stream);

void launch_softmax(const float* logits, float* out, std::int64_t rows, std::int64_t n, float scale,
                    cudaStream_t stream);
void launch_sample(const float* logits, std::int32_t* tokens, std::int64_t rows, std::int64_t n,
                   float scale, std::uint64_t noise_seed, cudaStream_t stream);

}  // namespace servesim::calibrate::cuda
