/// One thing to measure: a kernel and its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "patterns.hpp"

namespace servesim::calibrate {

/// What is measured, and which fields of a Case say how large.
enum class Kernel : std::uint8_t {
  kRead,              ///< bytes: sum of a buffer
  kWrite,             ///< bytes
  kCopy,              ///< bytes: of source and destination together
  kTriad,             ///< bytes: of all three arrays, a = b + 3 c
  kPeakFma,           ///< CPU only: multiply-adds in registers
  kGemv,              ///< n, k, dtype: of the weights; activations have 16 bits
  kGemm,              ///< m, n, k, dtype; 8-bit ones with the quantisation of the activations
  kSustainedGemm,     ///< the same, for seconds
  kDecodeAttention,   ///< batch, context, heads, kv_heads, head_dim, block_size
  kPrefillAttention,  ///< batch, context: tokens of each prompt, heads, kv_heads, head_dim
  kRmsNorm,           ///< m rows of n, residual added, as fused kernels do
  kRope,              ///< m tokens, heads + kv_heads heads of head_dim
  kSiluMul,           ///< m rows of n from 2n
  kLaunch,            ///< an empty kernel (CPU: a parallel region)
  kGraph,             ///< an empty kernel of a replayed CUDA graph
  kSoftmax,           ///< m rows of n logits
  kTopKTopP,          ///< m rows of n logits: softmax, top-k 50, top-p 0.9, a token drawn
  kHostToDevice,      ///< bytes, pinned memory
  kDeviceToHost,      ///< bytes, pinned memory
  kPeerCopy,          ///< bytes, to another GPU
  kAllReduce,         ///< bytes, gpus
};

/// A kernel and its sizes; fields that its kernel does not name are zero.
struct Case {
  Kernel kernel = Kernel::kRead;
  DType dtype = DType::kBf16;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 0, context = 0, heads = 0, kv_heads = 0, head_dim = 0, block_size = 0;
  std::int64_t bytes = 0;
  std::int64_t gpus = 1;
};

/// "gemm", "decode_attention", ... as the timings' `kernel` column has them.
const char* name_of(Kernel kernel);
/// "bfloat16", "float16", "fp8", "int8", "int4", "float32".
const char* name_of(DType type);
/// What is counted together in a plan: "bandwidth", "gemv", "gemm", ...
const char* family_of(Kernel kernel);
/// The kernel and its sizes in a few words.
std::string describe(const Case& c);

/// Floating-point operations; 0 for what only moves bytes.
double flops(const Case& c);
/// Bytes the kernel must move at least; the host's for copies.
double traffic(const Case& c);

/// Blocks of KV that a sequence of `c` takes.
std::int64_t kv_blocks_per_sequence(const Case& c);

constexpr std::int64_t kInt4Group = 128;  ///< int4 weights that share a scale
constexpr std::int64_t kTopK = 50;
constexpr double kTopP = 0.9;

}  // namespace servesim::calibrate
