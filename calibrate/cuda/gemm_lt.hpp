/// GEMMs through cuBLASLt, as serving engines run them: C[m][n] = A[m][k] W[n][k]^T, all rows
/// contiguous.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "patterns.hpp"

namespace servesim::calibrate::cuda {

/// One shape with the algorithm that cuBLASLt's heuristic puts first. bf16: bf16 in, bf16 out. fp8:
/// e4m3 in, bf16 out. int8: int32 out. Sums are fp32 (int32).
class LtGemm {
 public:
  /// Throws InputError when cuBLASLt has no algorithm for the type and shape on this GPU.
  LtGemm(DType type, std::int64_t m, std::int64_t n, std::int64_t k);
  ~LtGemm();
  LtGemm(const LtGemm&) = delete;
  LtGemm& operator=(const LtGemm&) = delete;

  void launch(const void* a, const void* w, void* c, void* workspace, cudaStream_t stream) const;

  static constexpr std::int64_t kWorkspaceBytes = 64 << 20;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// "cuBLASLt 13.0.2".
const char* lt_version_text();

}  // namespace servesim::calibrate::cuda
