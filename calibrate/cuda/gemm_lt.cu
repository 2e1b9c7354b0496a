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

using Product = std::unique_ptr<cublasLtMatmulDescOpaque_t, Release<cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Release<cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Release<cublasLtMatmulPreferenceDestroy>>;

Product make_product(const Types& types) {
  cublasLtMatmulDesc_t made = nullptr;
  require(cublasLtMatmulDescCreate(&made, types.compute, types.scale), "no description");
  Product product(made);
  // Row-major rows are columns to cuBLAS: it computes C^T[n][m] = (W^T)^T A^T.
  const cublasOperation_t w = CUBLAS_OP_T, a = CUBLAS_OP_N;
  require(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &w, sizeof(w)),
          "transposition");
  require(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSB, &a, sizeof(a)),
          "transposition");
  return product;
}

Layout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  require(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          "a layout");
  return Layout(made);
}

Preference make_preference() {
  cublasLtMatmulPreference_t made = nullptr;
  require(cublasLtMatmulPreferenceCreate(&made), "no preference");
  Preference preference(made);
  const auto workspace = static_cast<std::size_t>(LtGemm::kWorkspaceBytes);
  require(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace, sizeof(workspace)),
          "a preference");
  return preference;
}

}  // namespace

struct LtGemm::Parts {
  Product product;
  Layout w, a, c;
  cublasLtMatmulAlgo_t algorithm{};
  bool integer = false;

  Parts(DType type, std::int64_t m, std::int64_t n, std::int64_t k)
      : product(make_product(types_of(type))),
        w(make_layout(types_of(type).input, k, n)),
        a(make_layout(types_of(type).input, k, m)),
        c(make_layout(types_of(type).output, n, m)),
        integer(type == DType::kInt8) {
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle(), product.get(), w.get(), a.get(), c.get(), c.get(),
                                       make_preference().get(), 1, &result, &found);
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
  require(
      cublasLtMatmul(handle(), parts_->product.get(), alpha, w, parts_->w.get(), a, parts_->a.get(),
                     beta, c, parts_->c.get(), c, parts_->c.get(), &parts_->algorithm, workspace,
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
