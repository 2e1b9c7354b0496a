/// Errors of the kernel forms against measured rows, and their means by regime.
#pragma once

#include <string>
#include <vector>

#include "cost/measured_kernels.hpp"

namespace servesim {

/// One measured row beside its prediction.
struct KernelError {
  std::string kernel;  ///< gemm | attention_decode | attention_prefill | all_reduce
  std::string dtype;   ///< bf16 | fp8 (of the weights, or of the KV cache)
  std::string engine;  ///< vllm | tensorrt_llm | nccl
  int decade = 0;      ///< of the size: m, KV bytes, prompt tokens of the batch, message bytes
  double predicted_us = 0;
  double measured_us = 0;
  double relative() const { return predicted_us / measured_us - 1; }
};

/// Paths of the measured tables; empty: none.
struct KernelTables {
  std::string gemm;
  std::string attention_decode;
  std::string attention_prefill;
  std::string collectives;
};

/// Every row of the tables for `gpu` (a prefix, case ignored) beside the profile's prediction.
/// Throws InputError from the tables.
std::vector<KernelError> kernel_errors(const HardwareSpec& hardware, const KernelTables& tables,
                                       const std::string& gpu);

/// Mean of a group of rows.
struct ErrorMean {
  std::string name;
  std::size_t rows = 0;
  double mape = 0;  ///< mean absolute relative error
  double bias = 0;  ///< mean relative error
};

enum class ErrorGroup { kKernelAndType, kEngine, kDecade };

/// Means by kernel and type, by engine within that, or by decade of size within kernel and type.
std::vector<ErrorMean> error_means(const std::vector<KernelError>& errors, ErrorGroup group);

}  // namespace servesim
