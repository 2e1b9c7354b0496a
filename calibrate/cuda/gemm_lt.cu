#include "gemm_lt.hpp"

#include <cublasLt.h>

#include <stdexcept>
#include <string>

#include "core/error.hpp"
#include "cuda_common.hpp"
#include "kernel_case.hpp"
#include "text.hpp"

namespace servesim::calibrate::cuda {
namespace {

void require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(
      print_to_string("cuBLASLt: %s: status %d", what, static_cast<int>(status)));
}

cublasLtHandle_t handle() {
  static const cublasLtHandle_t shared = [] {
    cublasLtHandle_t made = nullptr;
    require(cublasLtCreate(&made), "no handle");
    return made;
  }();
  return shared;
}

struct Types {
  cublasComputeType_t compute;
  cudaDataType_t scale, input, output;
};

Types types_of(DType type) {
  switch (type) {
    case DType::kFp8:
      return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8F_E4M3, CUDA_R_16BF};
    case DType::kInt8:
      return {CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I};
    case DType::kFp16:
      return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F};
    default:
      return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF};
  }
}

}  // namespace

struct LtGemm::Parts {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t w = nullptr, a = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool integer = false;

  Parts(DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    const Types types = types_of(type);
    integer = type == DType::kInt8;
    require(cublasLtMatmulDescCreate(&product, types.compute, types.scale), "no description");
    // Row-major rows are columns to cuBLAS: it computes C^T[n][m] = (W^T)^T A^T.
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    require(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                           sizeof(transposed)),
            "transposition");
    require(
        cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof(plain)),
        "transposition");
    const auto rows = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
    require(cublasLtMatrixLayoutCreate(&w, types.input, rows(k), rows(n), k), "layout of W");
    require(cublasLtMatrixLayoutCreate(&a, types.input, rows(k), rows(m), k), "layout of A");
    require(cublasLtMatrixLayoutCreate(&c, types.output, rows(n), rows(m), n), "layout of C");
    choose(type, m, n, k);
  }
  ~Parts() {
    if (c != nullptr) cublasLtMatrixLayoutDestroy(c);
    if (a != nullptr) cublasLtMatrixLayoutDestroy(a);
    if (w != nullptr) cublasLtMatrixLayoutDestroy(w);
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

 private:
  void choose(DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    cublasLtMatmulPreference_t preference = nullptr;
    require(cublasLtMatmulPreferenceCreate(&preference), "no preference");
    const std::size_t workspace = static_cast<std::size_t>(kWorkspaceBytes);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace, sizeof(workspace));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle(), product, w, a, c, c,
                                                                 preference, 1, &result, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
      throw InputError(print_to_string(
          "cuBLASLt has no algorithm for %s m=%lld n=%lld k=%lld on this GPU", name_of(type),
          static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k)));
    }
    algorithm = result.algo;
  }
};

LtGemm::LtGemm(DType type, std::int64_t m, std::int64_t n, std::int64_t k)
    : parts_(std::make_unique<Parts>(type, m, n, k)) {}
LtGemm::~LtGemm() = default;

void LtGemm::launch(const void* a, const void* w, void* c, void* workspace,
                    cudaStream_t stream) const {
  const float one = 1, zero = 0;
  const std::int32_t one_i = 1, zero_i = 0;
  const void* alpha = parts_->integer ? static_cast<const void*>(&one_i) : &one;
  const void* beta = parts_->integer ? static_cast<const void*>(&zero_i) : &zero;
  require(cublasLtMatmul(handle(), parts_->product, alpha, w, parts_->w, a, parts_->a, beta, c,
                         parts_->c, c, parts_->c, &parts_->algorithm, workspace,
                         static_cast<std::size_t>(kWorkspaceBytes), stream),
          "the product failed");
}

const char* lt_version_text() {
  static const std::string text = [] {
    const std::size_t version = cublasLtGetVersion();
    return print_to_string("cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100,
                           version % 100);
  }();
  return text.c_str();
}

}  // namespace servesim::calibrate::cuda
