#include "kernel_case.hpp"

#include "text.hpp"

namespace servesim::calibrate {
namespace {

double d(std::int64_t value) {
  return static_cast<double>(value);
}

double attention_elements(const Case& c) {
  // Queries and outputs, then keys and values.
  const double queries = c.kernel == Kernel::kDecodeAttention ? 1 : d(c.context);
  return d(c.batch) * d(c.head_dim) * (2 * queries * d(c.heads) + 2 * d(c.context) * d(c.kv_heads));
}

double gemm_bytes(const Case& c) {
  const double weights = static_cast<double>(bytes_of(c.dtype, 2)) / 2 * d(c.n) * d(c.k);
  if (c.kernel == Kernel::kGemv) {
    double scales = 0;
    if (c.dtype == DType::kInt8) scales = 2 * d(c.n);
    if (c.dtype == DType::kInt4) scales = 2 * d(c.n) * d(c.k / kInt4Group);
    return weights + scales + 2 * (d(c.n) + d(c.k));
  }
  return weights + static_cast<double>(bytes_of(c.dtype, 1)) * d(c.m) * d(c.k) +
         2 * d(c.m) * d(c.n);
}

}  // namespace

const char* name_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::kRead:
      return "read";
    case Kernel::kWrite:
      return "write";
    case Kernel::kCopy:
      return "copy";
    case Kernel::kTriad:
      return "triad";
    case Kernel::kPeakFma:
      return "peak_fma";
    case Kernel::kGemv:
      return "gemv";
    case Kernel::kGemm:
      return "gemm";
    case Kernel::kSustainedGemm:
      return "sustained_gemm";
    case Kernel::kDecodeAttention:
      return "decode_attention";
    case Kernel::kPrefillAttention:
      return "prefill_attention";
    case Kernel::kRmsNorm:
      return "rms_norm";
    case Kernel::kRope:
      return "rope";
    case Kernel::kSiluMul:
      return "silu_mul";
    case Kernel::kLaunch:
      return "launch";
    case Kernel::kGraph:
      return "graph_node";
    case Kernel::kSoftmax:
      return "softmax";
    case Kernel::kTopKTopP:
      return "top_k_top_p";
    case Kernel::kHostToDevice:
      return "host_to_device";
    case Kernel::kDeviceToHost:
      return "device_to_host";
    case Kernel::kPeerCopy:
      return "peer_copy";
    case Kernel::kAllReduce:
      return "all_reduce";
  }
  return "";
}

const char* name_of(DType type) {
  switch (type) {
    case DType::kBf16:
      return "bfloat16";
    case DType::kFp16:
      return "float16";
    case DType::kFp8:
      return "fp8";
    case DType::kInt8:
      return "int8";
    case DType::kInt4:
      return "int4";
    case DType::kFp32:
      return "float32";
  }
  return "";
}

const char* family_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::kRead:
    case Kernel::kWrite:
    case Kernel::kCopy:
    case Kernel::kTriad:
    case Kernel::kPeakFma:
      return "bandwidth";
    case Kernel::kRmsNorm:
    case Kernel::kRope:
    case Kernel::kSiluMul:
      return "elementwise";
    case Kernel::kLaunch:
    case Kernel::kGraph:
      return "launch";
    case Kernel::kSoftmax:
    case Kernel::kTopKTopP:
      return "sampling";
    case Kernel::kHostToDevice:
    case Kernel::kDeviceToHost:
    case Kernel::kPeerCopy:
      return "copies";
    default:
      return name_of(kernel);
  }
}

std::string describe(const Case& c) {
  const auto whole = [](std::int64_t value) { return static_cast<long long>(value); };
  switch (c.kernel) {
    case Kernel::kGemv:
      return print_to_string("gemv %s n=%lld k=%lld", name_of(c.dtype), whole(c.n), whole(c.k));
    case Kernel::kGemm:
    case Kernel::kSustainedGemm:
      return print_to_string("%s %s m=%lld n=%lld k=%lld", name_of(c.kernel), name_of(c.dtype),
                             whole(c.m), whole(c.n), whole(c.k));
    case Kernel::kDecodeAttention:
    case Kernel::kPrefillAttention:
      return print_to_string("%s batch=%lld tokens=%lld heads=%lld/%lld block_size=%lld",
                             name_of(c.kernel), whole(c.batch), whole(c.context), whole(c.heads),
                             whole(c.kv_heads), whole(c.block_size));
    case Kernel::kRmsNorm:
    case Kernel::kSiluMul:
    case Kernel::kSoftmax:
    case Kernel::kTopKTopP:
      return print_to_string("%s %lld x %lld", name_of(c.kernel), whole(c.m), whole(c.n));
    case Kernel::kRope:
      return print_to_string("rope %lld tokens heads=%lld/%lld", whole(c.m), whole(c.heads),
                             whole(c.kv_heads));
    case Kernel::kAllReduce:
      return print_to_string("all_reduce %lld bytes over %lld GPUs", whole(c.bytes), whole(c.gpus));
    case Kernel::kLaunch:
    case Kernel::kGraph:
    case Kernel::kPeakFma:
      return name_of(c.kernel);
    default:
      return print_to_string("%s %lld bytes", name_of(c.kernel), whole(c.bytes));
  }
}

double flops(const Case& c) {
  switch (c.kernel) {
    case Kernel::kGemv:
      return 2 * d(c.n) * d(c.k);
    case Kernel::kGemm:
    case Kernel::kSustainedGemm:
      return 2 * d(c.m) * d(c.n) * d(c.k);
    case Kernel::kDecodeAttention:
      return 4 * d(c.batch) * d(c.context) * d(c.heads) * d(c.head_dim);
    case Kernel::kPrefillAttention:
      return 2 * d(c.batch) * d(c.context) * d(c.context) * d(c.heads) * d(c.head_dim);
    case Kernel::kPeakFma:
      return 2 * d(c.n);
    default:
      return 0;
  }
}

double traffic(const Case& c) {
  switch (c.kernel) {
    case Kernel::kGemv:
    case Kernel::kGemm:
    case Kernel::kSustainedGemm:
      return gemm_bytes(c);
    case Kernel::kDecodeAttention:
    case Kernel::kPrefillAttention:
      return 2 * attention_elements(c);
    case Kernel::kRmsNorm:
      return 2 * 4 * d(c.m) * d(c.n);
    case Kernel::kRope:
      return 2 * 2 * d(c.m) * d(c.heads + c.kv_heads) * d(c.head_dim);
    case Kernel::kSiluMul:
      return 2 * 3 * d(c.m) * d(c.n);
    case Kernel::kSoftmax:
      return 2 * 4 * d(c.m) * d(c.n);
    case Kernel::kTopKTopP:
      return 4 * d(c.m) * d(c.n);
    case Kernel::kLaunch:
    case Kernel::kGraph:
    case Kernel::kPeakFma:
      return 0;
    default:
      return d(c.bytes);
  }
}

std::int64_t kv_blocks_per_sequence(const Case& c) {
  return (c.context + c.block_size - 1) / c.block_size;
}

}  // namespace servesim::calibrate
