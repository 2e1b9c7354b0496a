#include "cost/kernel_errors.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace servesim {
namespace {

const char* engine_name(MeasuredEngine engine) {
  switch (engine) {
    case MeasuredEngine::kVllm:
      return "vllm";
    case MeasuredEngine::kTensorRtLlm:
      return "tensorrt_llm";
    case MeasuredEngine::kNccl:
      return "nccl";
  }
  return "";
}

int decade_of(double size) {
  return static_cast<int>(std::floor(std::log10(std::max(size, 1.0)) + 1e-9));
}

template <class Row>
void add(std::vector<KernelError>& errors, const HardwareSpec& hardware,
         const std::vector<Row>& rows, const char* kernel, bool Row::*eight_bit,
         double (*size)(const Row&)) {
  for (const Row& row : rows) {
    errors.push_back({kernel, row.*eight_bit ? "fp8" : "bf16", engine_name(row.engine),
                      decade_of(size(row)), predict_us(hardware, row), row.us});
  }
}

std::string name_of(const KernelError& e, ErrorGroup group) {
  switch (group) {
    case ErrorGroup::kKernelAndType:
      return fmt::format("{} {}", e.kernel, e.dtype);
    case ErrorGroup::kEngine:
      return fmt::format("{} {} {}", e.kernel, e.dtype, e.engine);
    case ErrorGroup::kDecade:
      return fmt::format("{} {} 1e{:02}", e.kernel, e.dtype, e.decade);
  }
  return "";
}

}  // namespace

std::vector<KernelError> kernel_errors(const HardwareSpec& hardware, const KernelTables& tables,
                                       const std::string& gpu) {
  std::vector<KernelError> errors;
  if (!tables.gemm.empty()) {
    add<MeasuredGemm>(errors, hardware, read_gemms(tables.gemm, gpu), "gemm",
                      &MeasuredGemm::eight_bit, [](const MeasuredGemm& r) { return r.shape.m; });
  }
  if (!tables.attention_decode.empty()) {
    add<MeasuredDecode>(
        errors, hardware, read_decodes(tables.attention_decode, gpu), "attention_decode",
        &MeasuredDecode::eight_bit_kv, [](const MeasuredDecode& r) {
          return 2 * r.batch * r.context * r.kv_heads * r.head_dim * (r.eight_bit_kv ? 1 : 2);
        });
  }
  if (!tables.attention_prefill.empty()) {
    add<MeasuredPrefill>(errors, hardware, read_prefills(tables.attention_prefill, gpu),
                         "attention_prefill", &MeasuredPrefill::eight_bit_kv,
                         [](const MeasuredPrefill& r) { return r.batch * r.tokens; });
  }
  if (!tables.collectives.empty()) {
    for (const MeasuredAllReduce& row : read_all_reduces(tables.collectives, gpu)) {
      errors.push_back({"all_reduce", "bf16", engine_name(row.engine), decade_of(row.bytes),
                        predict_us(hardware, row), row.us});
    }
  }
  return errors;
}

std::vector<ErrorMean> error_means(const std::vector<KernelError>& errors, ErrorGroup group) {
  std::map<std::string, ErrorMean> means;
  for (const KernelError& error : errors) {
    ErrorMean& mean = means[name_of(error, group)];
    ++mean.rows;
    mean.mape += std::abs(error.relative());
    mean.bias += error.relative();
  }
  std::vector<ErrorMean> result;
  for (auto& [name, mean] : means) {
    mean.name = name;
    mean.mape /= static_cast<double>(mean.rows);
    mean.bias /= static_cast<double>(mean.rows);
    result.push_back(mean);
  }
  return result;
}

}  // namespace servesim
